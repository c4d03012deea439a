// Package lease has named leases, their claims, and groups, whose members share jobs by a lease for each job. It
// decides which process may acquire a lease (its row, on the database's clock), when a holder without a connection must
// stop, and which member of a group does which job, also after another member has died. It uses store, dialect and
// feedtype. Begin with lease.go, then group.go; DESIGN.md argues what a lease guarantees.
package lease
