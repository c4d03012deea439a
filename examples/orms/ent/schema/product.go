// Package schema is what ent's code is generated from.
package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
)

// Product is a row of the table products.
type Product struct{ ent.Schema }

// Fields are its columns, beside the id.
func (Product) Fields() []ent.Field {
	return []ent.Field{field.String("name"), field.Int("price")}
}
