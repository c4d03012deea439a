// Package plans tests that the databases' planners use the indexes that statements are written for.
package plans
