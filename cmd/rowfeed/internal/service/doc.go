// Package service has the commands that run until they are interrupted: serve, publish, relay and demo. The command
// ready, which asks a server whether it is ready, is here as well.
package service
