// Package publish tests the publisher: passes, several publishers, racing writers, tombstones, durability.
package publish
