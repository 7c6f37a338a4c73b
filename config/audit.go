package config

import "time"

// Audit is how long the audit log is kept in Redis.
type Audit struct {
	Retention time.Duration `key:"retention" default:"8760h" min:"24h" doc:"How long entries of the audit log are kept in Redis. The archive, if there is one, has them for good."`
	Max       int           `key:"max" default:"100000" min:"1000" doc:"Maximum number of entries of the audit log in Redis, of which each takes about 1 kB. Beyond it the oldest are deleted."`
}
