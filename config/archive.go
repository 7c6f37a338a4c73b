package config

// Archive is where every event is kept for good.
type Archive struct {
	Dir      string `key:"dir" empty:"off, or archive in the data directory where archive.url is set" doc:"Directory with every event, one JSON object a line, one file a day. Nothing in it is ever deleted. See The archive of events."`
	URL      Secret `key:"url" empty:"none" secret:"value" doc:"Address that accepts events by POST, one JSON object a line, instead of files: ClickHouse, or a collector of another store."`
	MaxSpool Size   `key:"maxSpool" default:"1GB" min:"1MB" doc:"Maximum size of the events that wait on the disk of a process while archive.url is unavailable. Beyond it the oldest are dropped."`
}
