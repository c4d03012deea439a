// Package lease has named leases, the terms for which somebody holds one, and groups, whose members share jobs by a
// lease for each. It decides who may take a lease (its row, on the database's clock), when a holder must stop although
// it could not ask, and which member of a group has which job. It uses store, dialect and feedtype. Begin with
// lease.go, then group.go.
package lease
