module github.com/rowfeed/rowfeed

go 1.26.8

require (
	github.com/klauspost/compress v1.20.3
	github.com/oklog/ulid/v2 v2.1.2
)
