package digest

import "context"

// Work does what is due now, once, in all shards. It returns how much that was. Tests that move the clock call
// it in place of Run.
func (d *Digests) Work(ctx context.Context) (n int, _ error) {
	for shard := range shards {
		found, err := d.works.claimShard(ctx, ctx, shard)
		if n += found; err != nil {
			return n, err
		}
	}
	return n, nil
}
