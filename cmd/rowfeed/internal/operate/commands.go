package operate

import (
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/spf13/cobra"
)

// Commands returns the commands check, repair, status, unblock, consumer, dead, lease, token and audit.
func Commands(a *cli.App) []*cobra.Command {
	return []*cobra.Command{
		newCheck(a), newRepair(a), newStatus(a), newUnblock(a), newConsumer(a), newDead(a),
		newLease(a), newToken(a), newAudit(a),
	}
}
