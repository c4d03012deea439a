module github.com/rowfeed/rowfeed/pgxtx

go 1.26.0

require (
	github.com/jackc/pgx/v5 v5.5.0
	github.com/rowfeed/rowfeed v0.0.0
)

require (
	github.com/jackc/pgservicefile v0.0.0-20221227161230-091c0ba34f0a // indirect
	golang.org/x/crypto v0.9.0 // indirect
	golang.org/x/text v0.9.0 // indirect
)

require (
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/oklog/ulid/v2 v2.1.1 // indirect
)
