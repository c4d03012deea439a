package service

import (
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/spf13/cobra"
)

// Commands returns the commands serve, publish, relay, ready and demo.
func Commands(a *cli.App) []*cobra.Command {
	return []*cobra.Command{newServe(a), newPublish(a), newRelay(a), newReady(a), newDemo(a)}
}
