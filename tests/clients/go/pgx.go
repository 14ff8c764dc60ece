// Runs the blocks of docs/clients.md for pgx. Each line of the output is a step, an ID and a name.
package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v4"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, "")
	check(err)

	var ada int64
	err = conn.QueryRow(ctx, "INSERT INTO customers (name) VALUES ($1) RETURNING id", "Ada").Scan(&ada)

	check(err)
	fmt.Println("insert", ada, "Ada")

	batch := &pgx.Batch{}
	for _, name := range []string{"Grace", "Edsger"} {
		batch.Queue("INSERT INTO customers (name) VALUES ($1) RETURNING id, name", name)
	}
	results := conn.SendBatch(ctx, batch)
	for i := 0; i < batch.Len(); i++ {
		var id int64
		var name string
		err = results.QueryRow().Scan(&id, &name)

		check(err)
		fmt.Println("bulk", id, name)
	}
	check(results.Close())

	names := []string{"Barbara", "Donald", "Alan"}
	var first int64
	err = conn.QueryRow(ctx, "SELECT snowflake_reserve($1)", len(names)).Scan(&first)
	check(err)
	rows := pgx.CopyFromSlice(len(names), func(n int) ([]interface{}, error) {
		return []interface{}{first + int64(n), names[n]}, nil
	})
	_, err = conn.CopyFrom(ctx, pgx.Identifier{"customers"}, []string{"id", "name"}, rows)

	check(err)
	for n, name := range names {
		fmt.Println("block", first+int64(n), name)
	}

	found, err := conn.Query(ctx, "SELECT id, name FROM customers ORDER BY id")
	check(err)
	for found.Next() {
		var id int64
		var name string
		check(found.Scan(&id, &name))
		fmt.Println("read", id, name)
	}

	var list []byte
	err = conn.QueryRow(ctx, "SELECT json_agg(customers) FROM customers").Scan(&list)
	check(err)
	var values []map[string]interface{}
	err = json.Unmarshal(list, &values) // float64

	check(err)
	for _, value := range values {
		fmt.Printf("trap %.0f %s\n", value["id"], value["name"])
	}

	var customers []struct {
		ID   int64
		Name string
	}
	err = json.Unmarshal(list, &customers)

	check(err)
	for _, customer := range customers {
		fmt.Println("right", customer.ID, customer.Name)
	}
	check(conn.Close(ctx))
}
