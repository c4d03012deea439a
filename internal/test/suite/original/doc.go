// Package original has the tests of SQL that teams have written for the library mssql-changefeed: it runs unchanged,
// also from many writers and readers at once. The SQL is in the fixture.
package original
