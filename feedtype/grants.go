package feedtype

// Grants are the logins of the database, or the roles that stand for several logins, that may use a feed. A writer
// may record changes as the feed's mode and capture need it. A reader may fetch. Neither may do anything else with
// rowfeed's tables. Names are those of the database. On MySQL and MariaDB a name is "app@10.0.0.%" or "app", which is
// stored as "app@%" unless it is a role of MariaDB.
type Grants struct {
	Writers []string `json:"writers,omitempty"`
	Readers []string `json:"readers,omitempty"`
}

// IsZero tells whether there are no logins.
func (g Grants) IsZero() bool { return len(g.Writers) == 0 && len(g.Readers) == 0 }
