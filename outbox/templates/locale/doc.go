// Package locale formats dates, numbers, money and plurals in a language, for templates.
//
// It knows about fifty languages and regions, from the Unicode CLDR (locales.json; plurals: CLDR 48). An
// unknown language is formatted as English, an unknown region as its language. It never fails, for any tag,
// number or time. The result depends only on the arguments: it reads no clock and no environment.
//
// It owns no Redis keys.
package locale
