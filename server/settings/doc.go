// Package settings stores the settings that can be changed while Postroom runs: webhook target, public
// address, delivery attempts, completed jobs to keep, whether opens and clicks are counted. The API and the
// pages show and change them. All parts that use them read them here.
//
// A setting has the value of the configuration until it is changed. A changed one keeps its value through
// restarts, whatever the configuration says.
//
// It promises:
//   - An error about a request names every wrong field, and then nothing is changed.
//   - The fields of one request change together.
//   - [Settings.Current] costs nothing. It is at most about a second old while [Settings.Run] runs, and
//     current in the process that made a change.
//   - The custom headers of webhooks, whose values are often credentials, are sealed before they reach Redis
//     and masked in logs. [Settings.Get] returns them, so reading settings needs the right to change them.
//
// It sends nothing: package webhooks delivers, and app passes these settings to it.
//
// # Redis
//
// One key in partition 0: settings (hash: a setting's name, its value as JSON). It does not expire.
//
// If Redis is unreachable, Get and Update return Unavailable, and Current returns the values last read.
package settings
