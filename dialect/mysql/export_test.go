package mysql

import "github.com/rowfeed/rowfeed/dialect"

func Signature(t dialect.TableName) string { return New().signature(t) }
