// Package settings keeps the settings that can be changed while Postroom runs: the instance's webhook target,
// the public address, the number of delivery attempts and of completed jobs to keep, whether opens and clicks
// are counted. It works for the doors, which show and change them, and for everything that acts on them.
//
// A setting that was never changed has the value the configuration gave it; one that was changed keeps its
// value through restarts, whatever the configuration says.
//
// It promises:
//   - Every wrong field of a request is reported at once, and then nothing is changed.
//   - The fields of one request change together.
//   - [Settings.Current] costs nothing and is never more than about a second behind, as long as
//     [Settings.Run] runs; in the process that made a change it is not behind at all.
//   - The custom headers of webhooks, whose values are often credentials, are sealed before they reach Redis
//     and masked in logs. [Settings.Get] does show them, so only whoever may change settings may read them.
//
// It sends nothing and registers nothing: package webhooks delivers, and app hands it what is set here.
//
// # Redis
//
// One key in partition 0: settings (hash: a setting's name, its value as JSON). It does not expire.
//
// When Redis is away, Get and Update answer Unavailable and Current goes on giving what was last read.
package settings
