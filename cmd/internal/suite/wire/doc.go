// Package wire compares the SQL that each database is sent with the files of testdata.
package wire
