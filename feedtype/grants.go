package feedtype

// Grants are logins of the database, or roles that stand for several, that may use a feed.
// A writer records changes as the feed's mode wants it, and a reader fetches; neither may do
// anything else to rowfeed's tables. Names are as the database has them; on MySQL and MariaDB
// "app@10.0.0.%", or "app", which is noted as "app@%" unless it is a role of MariaDB's.
type Grants struct {
	Writers []string `json:"writers,omitempty"`
	Readers []string `json:"readers,omitempty"`
}

// IsZero tells whether nobody is named.
func (g Grants) IsZero() bool { return len(g.Writers) == 0 && len(g.Readers) == 0 }
