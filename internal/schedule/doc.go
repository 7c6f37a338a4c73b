// Package schedule reads wall clocks: hours of a week, local times, cadences, quiet hours, time zones. It is
// pure: it asks no clock and keeps no state.
//
// It promises:
//   - A window is open at an instant if the wall clock at that instant is in it. So where clocks jump
//     forward, a window that would begin in the gap begins at the end of the gap, and one that lies in the
//     gap does not open. Where clocks go back, hours that come twice are open both times if they are in the
//     window.
//   - A local time in a gap is refused by At. One that comes twice is the first of the two.
//   - A cadence has one period for each local time that it asks for, never two, whatever clocks do. Its ID is
//     the local date's, not the instant's. A time in a gap comes at the end of the gap, and a time that
//     exists twice comes the first time. No period comes before the clocks show its time.
//   - Two cases have no period: a date that clocks jump over, such as 2011-12-30 in Pacific/Apia, and a time
//     that falls on the same instant as a later one. Only the later has one.
//   - Dates are counted on the calendar of the zone, never in hours. A day that a month lacks is its last.
//   - A cron is as in Debian's cron(8): if two kinds of days are restricted, either is enough. A cron that
//     comes more often than every 15 minutes, or never, is refused.
//   - Quiet hours end at the first instant that is in none of their windows, by the same rule for clocks.
//   - Time zones are the IANA's, by their full names. They are compiled in, for machines without them.
//   - Nothing panics, and every search ends, whatever the input is.
//
// It owns no Redis keys.
package schedule
