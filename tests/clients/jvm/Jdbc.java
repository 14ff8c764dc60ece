// Runs the blocks of docs/clients.md for JDBC. Each line of the output is a step, an ID and a name.

import java.sql.*;

public class Jdbc {
    static void print(String step, Object id, String name) {
        System.out.println(step + " " + id + " " + name);
    }

    public static void main(String[] arguments) throws SQLException {
        String url = "jdbc:postgresql://" + System.getenv("PGHOST") + "/postgres";
        Connection connection = DriverManager.getConnection(url, "postgres", "");

        String[] returned = {"id"};
        PreparedStatement insert = connection.prepareStatement("INSERT INTO customers (name) VALUES (?)", returned);
        insert.setString(1, "Ada");
        insert.executeUpdate();
        ResultSet keys = insert.getGeneratedKeys();
        keys.next();
        long ada = keys.getLong("id");

        print("insert", ada, "Ada");

        for (String name : new String[] {"Grace", "Edsger"}) {
            insert.setString(1, name);
            insert.addBatch();
        }
        insert.executeBatch();
        keys = insert.getGeneratedKeys(); // a row for each name, in this order

        for (String name : new String[] {"Grace", "Edsger"}) {
            keys.next();
            print("bulk", keys.getLong("id"), name);
        }

        String[] names = {"Barbara", "Donald", "Alan"};
        PreparedStatement reserve = connection.prepareStatement("SELECT snowflake_reserve(?)");
        reserve.setInt(1, names.length);
        ResultSet block = reserve.executeQuery();
        block.next();
        long first = block.getLong(1);
        PreparedStatement copy = connection.prepareStatement("INSERT INTO customers (id, name) VALUES (?, ?)");
        for (int n = 0; n < names.length; n++) {
            copy.setLong(1, first + n);
            copy.setString(2, names[n]);
            copy.addBatch();
        }
        copy.executeBatch();

        for (int n = 0; n < names.length; n++) {
            print("block", first + n, names[n]);
        }

        String query = "SELECT id, name FROM customers ORDER BY id";
        ResultSet rows = connection.createStatement().executeQuery(query);
        while (rows.next()) {
            print("read", rows.getLong("id"), rows.getString("name"));
        }

        rows = connection.createStatement().executeQuery(query);
        rows.next();
        try {
            rows.getInt("id");
        } catch (SQLException error) {
            print("refused", error.getSQLState(), "Ada");
        }
        do {
            double rounded = rows.getDouble("id");
            print("trap", String.format("%.0f", rounded), rows.getString("name"));
        } while (rows.next());
        connection.close();
    }
}
