// Package schema is the schema that ent generates code from.
package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
)

// Product is a row of the table products.
type Product struct{ ent.Schema }

// Fields returns the columns other than the id.
func (Product) Fields() []ent.Field {
	return []ent.Field{field.String("name"), field.Int("price")}
}
