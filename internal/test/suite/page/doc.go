// Package page tests reading: pages, cursors, views, waiting for entries, replicas, restored databases.
package page
