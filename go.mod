module github.com/rowfeed/rowfeed

go 1.26.0

require (
	github.com/klauspost/compress v1.17.0
	github.com/oklog/ulid/v2 v2.1.1
)
