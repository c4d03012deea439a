// Package install tests setting up and upgrading: migrations, feeds, adoption, printed SQL, roles, stored data.
package install
