// Package schedule reads wall clocks: hours of a week, local times, time zones. It is pure: it asks no clock
// and keeps no state.
//
// It promises:
//   - A window is open at an instant if the wall clock at that instant is in it. So where clocks jump
//     forward, a window that would begin in the gap begins at the end of the gap, and one that lies in the
//     gap does not open. Where clocks go back, hours that come twice are open both times if they are in the
//     window.
//   - A local time in a gap is refused. One that comes twice is the first of the two.
//   - Time zones are those of the IANA, by their full names. They are compiled in, for machines without them.
//   - Nothing panics, and every search ends, whatever the input is.
//
// It owns no Redis keys.
package schedule
