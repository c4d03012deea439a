// Package outbox tests outbox feeds: records, the publisher that moves them, back-fill, retention.
package outbox
