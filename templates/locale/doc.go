// Package locale writes dates, numbers, money and plurals the way a language does, for templates.
//
// It knows some fifty languages and regions, in the words of the Unicode CLDR (locales.json); a language it doesn't know is written as
// English, a region as its language. It promises never to fail for a tag, a number or a time, whatever they are, and to answer the same for
// the same arguments: it reads no clock and no environment. Time zones by name are compiled in, so none depends on the machine.
//
// It owns no Redis keys.
package locale
