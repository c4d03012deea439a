// Package lease tests leases, and groups that share jobs by leases.
package lease
