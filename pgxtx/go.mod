module github.com/rowfeed/rowfeed/pgxtx

go 1.26.8

require (
	github.com/jackc/pgx/v5 v5.12.0
	github.com/rowfeed/rowfeed v0.0.0
)

require (
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/oklog/ulid/v2 v2.1.2 // indirect
	golang.org/x/text v0.41.0 // indirect
)
