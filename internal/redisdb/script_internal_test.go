package redisdb

import "testing"

func TestOnlyWhatAScriptNeedsOfAPreludeIsSent(t *testing.T) {
	t.Parallel()
	const prelude = `-- What scripts share. count is spoken of here.
local prefix = 'p:'

local function key(id) return prefix .. id end
-- count counts
local function count(id)
  redis.call('INCR', key(id))
end
local far, near = 3600, 60
local function expire(id) redis.call('EXPIRE', key(id), far) end
`
	for _, c := range []struct{ name, source, want string }{
		{"nothing", "-- count is not called\nreturn 1", ""},
		{"one", "return count(KEYS[1])",
			"local prefix = 'p:'\nlocal function key(id) return prefix .. id end\nlocal function count(id)\n  redis.call('INCR', key(id))\nend\n"},
		{"a value", "return near", "local far, near = 3600, 60\n"},
		{"part of a word", "return counter .. farther", ""},
	} {
		if got := readPrelude(prelude).needed(c.source); got != c.want {
			t.Errorf("%s: needs\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
	const statements = "redis.call('PING')\nif far then\n  far = 1\nelse\n  near = 2\nend\n"
	if got, want := readPrelude(prelude+statements).needed("return 1"), "local far, near = 3600, 60\n"+
		statements; got != want {
		t.Errorf("statements need\n%s\nwant\n%s", got, want)
	}
}
