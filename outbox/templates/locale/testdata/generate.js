// Writes ../locales.json (how dates, numbers and money are written in each language) and expected.json (what the tests expect), both asked
// from the Intl of Node.js, which has them from the Unicode CLDR. Run: node generate.js
'use strict';
const fs = require('fs');
const path = require('path');

const tags = `en en-GB en-AU en-CA en-IE en-IN en-NZ en-ZA de de-AT de-CH fr fr-BE fr-CA fr-CH es es-419 es-MX es-AR it it-CH nl nl-BE pt pt-PT
  sv da nb fi is pl cs sk hu ro bg hr sl sr el tr ru uk et lv lt he ja zh zh-TW ko vi id th hi ca`.split(/\s+/);
const currencies = `USD EUR GBP JPY CHF CAD AUD NZD CNY HKD TWD KRW INR BRL MXN SEK NOK DKK ISK PLN CZK HUF RON BGN UAH RUB TRY ILS ZAR SGD
  THB IDR VND AED SAR ARS CLP COP KWD BHD`.split(/\s+/);

const zoned = { timeZone: 'UTC', calendar: 'gregory', numberingSystem: 'latn' };
const parts = (tag, options, date) => new Intl.DateTimeFormat(tag, { ...zoned, ...options }).formatToParts(date);
const part = (tag, options, date, type) => (parts(tag, options, date).find(p => p.type === type) || {}).value;
const day = (y, m, d, h = 0, min = 0) => new Date(Date.UTC(y, m, d, h, min));
const months = Array.from({ length: 12 }, (_, m) => day(2023, m, 3));
const days = Array.from({ length: 7 }, (_, d) => day(2023, 0, 1 + d)); // a Sunday first

function names(tag) {
  const alone = d => new Intl.DateTimeFormat(tag, { ...zoned, month: 'long' }).format(d); // where a month is a number and a sign
  if (/^\d+$/.test(part(tag, { day: 'numeric', month: 'long', year: 'numeric' }, months[0], 'month'))) {
    return { ...dayNames(tag), months: months.map(alone), monthsShort: months.map(alone) };
  }
  return {
    ...dayNames(tag),
    months: months.map(d => part(tag, { day: 'numeric', month: 'long', year: 'numeric' }, d, 'month')),
    monthsShort: months.map(d => part(tag, { day: 'numeric', month: 'short', year: 'numeric' }, d, 'month')),
  };
}

function dayNames(tag) {
  return {
    days: days.map(d => part(tag, { dateStyle: 'full' }, d, 'weekday')),
    daysShort: days.map(d => part(tag, { weekday: 'short' }, d, 'weekday')),
    halves: [4, 16].map(h => part(tag, { hour: 'numeric', hour12: true }, day(2023, 0, 1, h), 'dayPeriod') || (h < 12 ? 'AM' : 'PM'))
      .map(half => half.replaceAll('\u202f', ' ')),
  };
}

// pattern turns a date as Intl writes it into the pattern it was written by.
function pattern(tag, words, options) {
  const format = new Intl.DateTimeFormat(tag, { ...zoned, ...options });
  const twelve = /h1/.test(format.resolvedOptions().hourCycle || '');
  const of = p => {
    const two = p.value.length === 2;
    switch (p.type) {
      case 'year': return two ? 'YY' : 'YYYY';
      case 'month':
        if (/^\d+$/.test(p.value)) return two ? 'MM' : 'M';
        if (p.value === words.months[1]) return 'MMMM';
        if (p.value === words.monthsShort[1]) return 'MMM';
        return '[' + p.value + ']!';
      case 'day': return two ? 'DD' : 'D';
      case 'weekday': return p.value === words.days[5] ? 'dddd' : 'ddd';
      case 'hour': return (twelve ? 'h' : 'H').repeat(p.value.length);
      case 'minute': return 'mm';
      case 'dayPeriod': return 'A';
      default: return /[A-Za-z]/.test(p.value) || /[^\x00-\x7f]/.test(p.value) ? '[' + p.value + ']' : p.value;
    }
  };
  return format.formatToParts(day(2023, 1, 3, 4, 5)).map(of).join('').replaceAll('\u202f', ' '); // as format() does
}

function money(tag) {
  const symbols = {};
  for (const code of currencies) {
    const format = new Intl.NumberFormat(tag, { style: 'currency', currency: code, numberingSystem: 'latn' });
    const symbol = format.formatToParts(1).find(p => p.type === 'currency').value;
    if (symbol !== code) symbols[code] = symbol;
  }
  const shape = n => new Intl.NumberFormat(tag, { style: 'currency', currency: 'EUR', numberingSystem: 'latn' }).formatToParts(n)
    .map(p => ({ currency: '¤', minusSign: p.value, literal: p.value, integer: '#' }[p.type] || '')).join('');
  const sign = type => new Intl.NumberFormat(tag, { style: 'currency', currency: 'EUR', numberingSystem: 'latn' }).formatToParts(1234567.5)
    .find(p => p.type === type).value;
  return { symbols, positive: shape(1), negative: shape(-1), decimal: sign('decimal'), group: sign('group') };
}

function numbers(tag) {
  const format = new Intl.NumberFormat(tag, { numberingSystem: 'latn', minimumFractionDigits: 1 });
  const found = type => (format.formatToParts(-1234567.5).find(p => p.type === type) || {}).value || '';
  return {
    decimal: found('decimal'),
    group: found('group'),
    minus: format.format(-1).split('1')[0],
    minGrouped: format.formatToParts(1234).some(p => p.type === 'group') ? 4 : 5,
    lakh: format.formatToParts(1234567).filter(p => p.type === 'group').length === 2 &&
      format.formatToParts(1234567).find(p => p.type === 'integer').value === '12',
  };
}

const before = JSON.parse(fs.readFileSync(path.join(__dirname, '..', 'locales.json'))).locales; // for the plurals
const locales = {};
for (const tag of tags) {
  const words = names(tag);
  const styles = {};
  for (const style of ['short', 'medium', 'long', 'full']) styles[style] = pattern(tag, words, { dateStyle: style });
  locales[tag] = { ...words, styles, time: pattern(tag, words, { timeStyle: 'short' }), ...numbers(tag), money: money(tag), plurals: before[tag].plurals };
}
const digits = {};
for (const code of currencies) {
  const n = new Intl.NumberFormat('en', { style: 'currency', currency: code }).resolvedOptions().maximumFractionDigits;
  if (n !== 2) digits[code] = n;
}
const lines = Object.keys(locales).map(tag => '    ' + JSON.stringify(tag) + ': ' + JSON.stringify(locales[tag]));
fs.writeFileSync(path.join(__dirname, '..', 'locales.json'),
  '{\n  "digits": ' + JSON.stringify(digits) + ',\n  "locales": {\n' + lines.join(',\n') + '\n  }\n}\n');

const expected = [];
const moments = [day(2024, 1, 29, 0, 5), day(2025, 8, 7, 12, 30), day(1999, 11, 31, 23, 59), day(2026, 4, 1, 9, 8)];
const amounts = [0, 1, -1, 0.5, 2, 5, 11, 21, 1234.5, 12345.678, -9876543.215, 1000000];
for (const tag of tags) {
  for (const at of moments) {
    for (const style of ['short', 'medium', 'long', 'full']) {
      expected.push(['date', tag, at.toISOString(), style, new Intl.DateTimeFormat(tag, { ...zoned, dateStyle: style }).format(at)]);
    }
    if (tag !== 'zh-TW') // which has more than two halves of a day
      expected.push(['date', tag, at.toISOString(), 'time', new Intl.DateTimeFormat(tag, { ...zoned, timeStyle: 'short' }).format(at)]);
  }
  const rules = new Intl.PluralRules(tag);
  for (const n of amounts) {
    expected.push(['number', tag, n, '', new Intl.NumberFormat(tag, { numberingSystem: 'latn' }).format(n)]);
    for (const code of ['EUR', 'USD', 'JPY', 'CHF', 'KWD']) {
      expected.push(['currency', tag, n, code, new Intl.NumberFormat(tag, { style: 'currency', currency: code, numberingSystem: 'latn' }).format(n)]);
    }
    expected.push(['plural', tag, n, '', rules.select(n)]);
  }
}
fs.writeFileSync(path.join(__dirname, 'expected.json'), '[\n' + expected.map(e => JSON.stringify(e)).join(',\n') + '\n]\n');
