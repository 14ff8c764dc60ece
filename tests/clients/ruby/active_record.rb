# Runs the blocks of docs/clients.md for Active Record. Each line of the output is a step, an ID and a name.

require 'active_record'

ActiveRecord::Base.establish_connection(adapter: 'postgresql', database: 'postgres')
ActiveRecord::Migration.verbose = false

# The database of an application does not have the extension yet.
ActiveRecord::Base.connection.execute('DROP EXTENSION snowflake_pg')

class EnableSnowflake < ActiveRecord::Migration[6.1]
  def up
    enable_extension 'snowflake_pg'
  end
end

EnableSnowflake.migrate(:up)

class CreateCustomers < ActiveRecord::Migration[6.1]
  def change
    create_table :customers, id: :bigint, default: -> { 'snowflake_nextval()' } do |t|
      t.text :name, null: false
    end
  end
end

CreateCustomers.migrate(:up)

class Customer < ActiveRecord::Base
end

ada = Customer.create!(name: 'Ada')

puts "insert #{ada.id} #{ada.name}"

rows = Customer.insert_all!([{ name: 'Grace' }, { name: 'Edsger' }], returning: %w[id name])

rows.each { |row| puts "bulk #{row['id']} #{row['name']}" }

names = %w[Barbara Donald Alan]
first = Customer.connection.select_value("SELECT snowflake_reserve(#{names.size})")
values = names.map.with_index { |name, n| { id: first + n, name: name } }
Customer.insert_all!(values)

values.each { |value| puts "block #{value[:id]} #{value[:name]}" }

Customer.order(:id).each { |customer| puts "read #{customer.id} #{customer.name}" }

class CreateAccounts < ActiveRecord::Migration[6.1]
  def change
    create_table :accounts do |t|
      t.text :name, null: false
    end
  end
end

CreateAccounts.migrate(:up)

class Account < ActiveRecord::Base
end

tony = Account.create!(name: 'Tony')
puts "trap #{tony.id} #{tony.name}"
