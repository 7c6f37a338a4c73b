#!/usr/bin/env python3
"""english-lint finds the mechanical signs of unnatural English in Postroom's texts.

It reads Markdown, HTML templates, Go and Lua sources, replies/table.txt and an OpenAPI document (JSON). It
prints FILE:LINE: RULE: ADVICE with the text that it found, and the counts for each area. README.md, in the
same folder, has the rules.

    english-lint.py                          check the files of the current repository
    english-lint.py docs README.md           check these files and folders
    english-lint.py --counts                 print only the counts, by area and by rule
    english-lint.py --files                  print only the counts, by file
    english-lint.py --rule of-front --area docs
    english-lint.py --sample 50 --seed 1     print 50 hits at random, to review the rules
    english-lint.py --write counts.txt       store the count of each file
    english-lint.py --limit counts.txt       exit 1 if a file has more hits than counts.txt allows

A line that contains english:ok is skipped. Exit status: 0; 1 if --limit or --strict fails; 2 for a usage
error.
"""
import argparse
import html
import json
import os
import random
import re
import subprocess
import sys
from collections import Counter, defaultdict

MAX_WORDS = 30

# --- Texts -------------------------------------------------------------------------------------------------

# A Text is a run of prose: its kind is "prose", "cell", "heading", "item", "label", "comment", "message",
# "help", "doc" or "log". lines maps offsets of the text to line numbers of the file.
class Text:
    __slots__ = ("area", "kind", "text", "lines")

    def __init__(self, area, kind, pieces):
        self.area, self.kind = area, kind
        parts, self.lines, at = [], [], 0
        for line, piece in pieces:
            piece = re.sub(r"\s+", " ", piece).strip()
            if not piece:
                continue
            self.lines.append((at, line))
            parts.append(piece)
            at += len(piece) + 1
        self.text = " ".join(parts)

    def line(self, offset):
        found = self.lines[0][1] if self.lines else 1
        for at, line in self.lines:
            if at > offset:
                break
            found = line
        return found


CODE = "\u25a1"  # stands for code, a placeholder or a template action


def plain(s):
    """plain removes Markdown from a line: code, links, images and emphasis."""
    s = re.sub(r"``.*?``|`[^`]*`", CODE, s)
    s = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", s)
    s = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", s)
    s = re.sub(r"<!--.*?-->", "", s)
    s = re.sub(r"<br\s*/?>", " ", s)
    s = re.sub(r"</?[a-z][^>]*>", "", s)
    s = re.sub(r"https?://\S+", CODE, s)
    return s.replace("**", "").replace("*", "").replace("\\|", "/")


def read_markdown(path, src):
    area = "docs"
    texts, pieces, kind = [], [], "prose"
    fence, comment = "", False

    def flush():
        nonlocal pieces, kind
        if pieces:
            # Links and code may go over a line end: they are removed from the whole paragraph.
            joined = plain("\n".join(p for _, p in pieces)).split("\n")
            texts.append(Text(area, kind, [(n, j) for (n, _), j in zip(pieces, joined)]
                              if len(joined) == len(pieces) else [(pieces[0][0], " ".join(joined))]))
        pieces, kind = [], "prose"

    for n, line in enumerate(src.split("\n"), 1):
        s = line.strip()
        m = re.match(r"(`{3,}|~{3,})(.*)", s)
        if m and not fence:
            flush()
            fence = m.group(1)
            continue
        if fence:
            if m and m.group(1).startswith(fence) and not m.group(2).strip():
                fence = ""
            continue
        if s.startswith("<!--") and "-->" not in s:
            comment = True
        if comment:
            comment = "-->" not in s
            continue
        if not s or re.match(r"^(\||\+)?[-:| ]+$", s):
            flush()
        elif s.startswith("|"):
            flush()
            for cell in re.split(r"(?<!\\)\|", s.strip("|")):
                texts.append(Text(area, "cell", [(n, plain(cell))]))
        elif s.startswith("#"):
            flush()
            texts.append(Text(area, "heading", [(n, plain(s.lstrip("# ")))]))
        elif re.match(r"^( {4}|\t)", line) and not pieces:
            continue  # indented code
        elif re.match(r"([-*+]|\d+\.) ", s):
            flush()
            kind = "item"
            pieces.append((n, re.sub(r"^([-*+]|\d+\.) ", "", s)))
        else:
            pieces.append((n, s))
    flush()
    return texts


BLOCK = re.compile(r"</?(?!(?:a|b|i|em|strong|code|span|kbd|samp|small|time|abbr|mark|var)\b)[a-zA-Z!][^>]*>")


def read_html(path, src):
    def blank(m):
        return re.sub(r"[^\n]", " ", m.group())

    s = re.sub(r"\{\{/\*.*?\*/\}\}|<!--.*?-->", blank, src, flags=re.S)
    s = re.sub(r"<(script|style|svg)\b.*?</\1>", blank, s, flags=re.S)
    strings = []
    s = re.sub(r"\{\{.*?\}\}", lambda m: CODE + re.sub(r"[^\n]", "", m.group()), s, flags=re.S)
    texts = []
    for m in re.finditer(r'\b(?:title|placeholder|aria-label|alt|data-[a-z-]*text)="([^"]+)"', s):
        texts.append(Text("pages", "label", [(s.count("\n", 0, m.start()) + 1, html.unescape(m.group(1)))]))
    s = BLOCK.sub(lambda m: "\0" + re.sub(r"[^\n]", "", m.group()), s)
    s = re.sub(r"</?(?:code|kbd|samp|var)\b[^>]*>([^<]*)</(?:code|kbd|samp|var)>", CODE, s)
    s = re.sub(r"<[^>]*>", "", s)
    line = 1
    for block in s.split("\0"):
        pieces = [(line + i, html.unescape(p)) for i, p in enumerate(block.split("\n"))]
        line += block.count("\n")
        if any(p.strip(" " + CODE) for _, p in pieces):
            texts.append(Text("pages", "label", pieces))
    return texts + strings


GO = re.compile(
    r"//[^\n]*|/\*.*?\*/|\"(?:[^\"\\\n]|\\.)*\"|`[^`]*`|'(?:[^'\\\n]|\\.)*'", re.S)


def go_area(path, before, kind):
    top = path.split("/")[0]
    if kind == "comment":
        return "comments"
    if re.search(r"\.(?:Info|Warn|Error|Debug)(?:Context)?\((?:[a-z.]*[cC]tx[a-zA-Z]*, *)?$", before):
        return "logs"
    if top == "config":
        return "config"
    if top == "cmd":
        return "cli"
    if top == "ui" or "_page" in path or "page_" in path:
        return "pages"
    if kind == "doc" or re.search(r"(?:^|/)routes[^/]*\.go$", path):
        return "openapi"
    return "messages"


def unquote(lit):
    if lit.startswith("`"):
        return lit[1:-1]
    return (lit[1:-1].replace("\\n", "\n").replace("\\t", " ").replace('\\"', '"').replace("\\\\", "\\"))


VERB = re.compile(r"%[-+# 0]*(?:\[\d+\])?[\d.*]*[vTtbcdoqxXUeEfFgGsp]")


def prose_like(s):
    if re.search(r"</|\{\{|\\x[0-9a-f]{2}|redis\.call|KEYS\[|^\s*[<{\[]|\bARGV\b|^[\w.-]+/[\w.-]+;", s):
        return False
    words = re.findall(r"(?<![\w./:@-])[A-Za-z][a-z']+(?![\w/:@-])", s)
    return len(words) >= 3


def read_go(path, src):
    if re.match(r"// Code generated", src):
        return []
    texts, run, run_end, run_trailing = [], [], 0, False
    newline = [m.start() for m in re.finditer("\n", src)]

    def line_of(offset):
        lo, hi = 0, len(newline)
        while lo < hi:
            mid = (lo + hi) // 2
            if newline[mid] < offset:
                lo = mid + 1
            else:
                hi = mid
        return lo + 1

    def flush():
        nonlocal run
        # Indented lines of a comment are diagrams and examples. Empty ones and headings end a paragraph.
        pieces, kind = [], "comment"
        for n, text in run + [(0, "")]:
            if text.startswith(("\t", "    ")) and not pieces:
                continue
            body = text.strip()
            if not body or body.startswith(("#", "- ", "* ")):
                if pieces:
                    texts.append(Text("comments", kind, pieces))
                pieces = []
                body = body.lstrip("#-* ")
                if not body:
                    continue
            pieces.append((n, plain(re.sub(r"\[([A-Za-z.]+)\]", r"\1", body))))
        run = []

    tokens = list(GO.finditer(src))
    i = 0
    while i < len(tokens):
        m = tokens[i]
        tok = m.group()
        if tok.startswith("//"):
            gap = src[run_end:m.start()]
            trailing = src[src.rfind("\n", 0, m.start()) + 1:m.start()].strip() != ""
            if run and (trailing or run_trailing or gap.strip() or gap.count("\n") > 1):
                flush()
            run_trailing = trailing
            if not re.match(r"//(go:|nolint|line |export |lint:|\+build)", tok):
                run.append((line_of(m.start()), tok[2:].removeprefix(" ")))
            run_end = m.end()
            i += 1
            continue
        if run:
            flush()
        if tok.startswith("`") and re.search(r'\b(?:doc|help)(?:[a-z]*):"', tok):
            for d in re.finditer(r'\b(doc|help|placeholder):"((?:[^"\\]|\\.)*)"', tok):
                kind = "help" if d.group(1) == "help" else "doc"
                text = d.group(2).replace('\\"', '"')
                line = line_of(m.start() + d.start())
                texts.append(Text(go_area(path, "", "doc"), kind, [(line, plain(text))]))
        elif tok[0] in "\"`" and not (tok[0] == "`" and re.search(r'\b(json|path|query|header|key):"', tok)):
            line, value = line_of(m.start()), unquote(tok)
            before = src[max(0, m.start() - 80):m.start()]
            while i + 1 < len(tokens) and tokens[i + 1].group()[0] in "\"`" and \
                    re.fullmatch(r"\s*\+\s*", src[tokens[i].end():tokens[i + 1].start()]):
                i += 1
                value += unquote(tokens[i].group())
            value = VERB.sub(CODE, value)
            if prose_like(value) and not before.rstrip().endswith(("import", "package")):
                area = go_area(path, before, "message")
                for n, par in enumerate(re.split(r"\n\s*\n", value)):
                    if re.match(r"( {4}|\t)", par) or not prose_like(par):
                        continue
                    kind = "log" if area == "logs" else "block" if "\n" in par else "message"
                    texts.append(Text(area, kind, [(line, plain(par))]))
        i += 1
    if run:
        flush()
    return texts


def read_lua(path, src):
    texts, pieces = [], []
    for n, line in enumerate(src.split("\n") + [""], 1):
        m = re.match(r"\s*-- ?(.*)", line)
        if m and m.group(1).strip() and not m.group(1).startswith("  "):
            pieces.append((n, m.group(1)))
        elif pieces:
            texts.append(Text("comments", "comment", pieces))
            pieces = []
    return texts


def read_replies(path, src):
    texts, pieces = [], []
    for n, line in enumerate(src.split("\n") + ["end: "], 1):
        m = re.match(r"(title|cause|remedy): (.*)", line)
        if m:
            if pieces:
                texts.append(Text("replies", "message", pieces))
            pieces = [(n, m.group(2))]
        elif line.startswith(" ") and pieces:
            pieces.append((n, line))
        elif pieces:
            texts.append(Text("replies", "message", pieces))
            pieces = []
    return texts


def read_openapi(path, src):
    texts, seen = [], set()

    def walk(x):
        if isinstance(x, dict):
            for k, v in x.items():
                if k in ("summary", "description") and isinstance(v, str) and v not in seen:
                    seen.add(v)
                    texts.append(Text("openapi", "doc", [(1, plain(v))]))
                elif k not in ("example", "examples", "default", "enum"):
                    walk(v)
        elif isinstance(x, list):
            for v in x:
                walk(v)

    walk(json.loads(src))
    return texts


def source(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()


def read(path, src):
    name = os.path.basename(path)
    if name.endswith(".md"):
        return read_markdown(path, src)
    if name.endswith(".html"):
        return read_html(path, src)
    if name.endswith(".go"):
        return read_go(path, src)
    if name.endswith(".lua"):
        return read_lua(path, src)
    if path.endswith("replies/table.txt"):
        return read_replies(path, src)
    if name.endswith(".json") and "openapi" in name:
        return read_openapi(path, src)
    return []


# --- Rules -------------------------------------------------------------------------------------------------

ALL = ("docs", "pages", "cli", "openapi", "messages", "logs", "config", "replies", "comments")
SHOWN = tuple(a for a in ALL if a != "comments")  # areas that users read


class Rule:
    def __init__(self, name, pattern, advice, areas=ALL, kinds=None, unless=None, flags=0):
        self.name, self.advice, self.areas, self.kinds = name, advice, areas, kinds
        self.re = re.compile(pattern, flags)
        self.unless = re.compile(unless, re.I) if unless else None


NOUN = r"(?:(?:the|a|an|its|their|this|that|each|every|all|one|your|our|his) )?(?:[a-z-]+ )?[a-z-]+"
# Words before or after which "of" is ordinary English.
COUNT = (r"(?:one|all|each|some|any|most|none|both|half|part|parts|number|numbers|list|lists|kind|kinds|type|types|"
         r"sort|set|pair|set|couple|lot|instead|because|out|day|days|hour|hours|end|start|"
         r"beginning|top|rest|many|"
         r"much|few|share|percent|copy|copies|case|cases|way|ways|version|point|time|times|"
         r"field|fields|thousands|"
         r"hundreds|millions|two|three|four|five|ten|%|first|last|inside|outside|ahead|"
         r"independent|regardless|"
         r"minutes|seconds|bytes|bits|megabytes|megabyte|range|proof|name|names|size|level|"
         r"order|batch|row|rows|"
         r"which|what|whose|chunk|chunks|page|pages|value|values|digits|depth|and|or|majority|bound|use|id|ids)")

RULES = [
    Rule("headless", r"^(?:Who|Whom|What|Which|Whose)\b(?! (?:to|a|an|the|about)\b)[^?]*$",
         "name the noun: \"A subscriber who…\", \"Messages that…\", or begin with \"If\"",
         kinds=("prose", "item", "cell", "label", "message", "doc", "help"),
         unless=r"^what you |^what is .{0,40}[?:]$|^what (?:happens|it does|it is|this|postroom)\b|"
         r"^which \w+ (?:to|you)|"
                r"^what [\w ]+ (?:is|are|says|means)\.?$"),
    Rule("headless-mid",
         r"\b(?:for|of|to|by|with|from|but|than|so|also) who (?!(?:it|they|we|you|he|she|to|the|a|an)\b)\w+|"
         r"(?:^|[,;:] )who (?:is|are|has|have|was|left|lacks|may|got|had|opened|asks|sends) [^,?]{3,60}\b"
         r"(?:gets|is|are|has|stays|comes|meets|may|can|must|will|sees|needs|learns)\b",
         "give the relative clause a noun: \"people who\", \"anyone who\", \"a subscriber who\""),
    Rule("what-noun",
         r"(?<![\w'])what (?:waits|waited|came|comes|remains|belongs|stands|became of|becomes of|there is of|"
         r"is known|was known|is told|is asked|was due|is stored of|is kept of|it has|is meant|is theirs|"
         r"it wants|they want|ended|of it|has ended|was before|is held)\b",
         "\"what\" hides a noun: the messages, the events, the result, the rest of the data",
         unless=r"\bwhat is left\?|see what is due"),
    Rule("those", r"\b[Tt]hose (?:that|which|whose)\b",
         "repeat the noun instead of \"those that\"", areas=SHOWN),
    Rule("those", r"\b(?:[Tt]hose (?:of|it|they|known|already|below|beyond|about)\b|[Tt]hat of|"
         r"[Tt]hat which|[Tt]hose\.$)",
         "repeat the noun instead of \"those\" or \"that of\"",
         unless=r"\bthose of you\b|that of course"),
    Rule("ones", r"\b(?:[Ff]urther|[Tt]icked|[Rr]ight|[Ww]rong|[Ss]lower|[Ee]qual|"
         r"[Oo]wn) ones?\b(?! of)|\b(?:[Ff]irst|[Ll]ast|[Nn]ewer) ones\b",
         "repeat the noun: \"more messages\", \"the wrong tokens\""),
    Rule("of-front", r"(?:^|(?<=[:;(] ))[Oo]f (?!course\b|the following\b)[a-z\u25a1]",
         "a clause that begins with \"Of\": put the noun first (\"For a CSV file, …\", \"its network is…\")",
         unless=r": of [^.;]*, (?:and )?of |^Of (?:returns|reports)\b"),
    Rule("of-which", r"\bof (?:which|whom)\b", "split the sentence, or use \"whose\" or \"with\"",
         unless=r"\b(?:all|each|some|most|none|both|many|any|one|two|half) of wh"),
    Rule("double-of", r"", "two \"of\" in a row: use a possessive, a compound noun or a verb"),
    Rule("of-own", r"\b(?:no|an?|any|has|have|had) [a-z-]+ of (?:its|their|his|her|your) own\b|"
         r"\b[a-z]+ of (?:yours|theirs|somebody's)\b",
         "use \"own\" before the noun: \"its own limit\", \"your own page\"", unless=r"\binstead of\b"),
    Rule("told", r"\b(?:is|are|was|were|be|been|has|had|not|nobody is|have) told\b|\btold (?:of|about|"
         r"only|by|to)\b|"
         r"\btells? (?:of|about|whether|how|why|what|when|which|where|no|nobody|operators|at|by|"
         r"it|itself|them)\b|"
         r"\btells?\.$|\bthat tells\b",
         "reports, shows, says, means; \"you are notified\"", unless=r"\btells? it to\b|tell it apart"),
    Rule("to-be", r"\b(?:is|are|was|were) to be\b|\b(?:is|are) to (?:begin|go|come|wait|get|send|stop|"
         r"end|start)\b",
         "say who must do it: \"must be\", \"will be\", \"can be\", or use the imperative",
         unless=r"(?:goal|aim|plan|idea|purpose|job|task|intent|way) (?:\w+ )?(?:is|was) to"),
    Rule("is-no", r"(?<![Tt]here )(?<!there )\b(?:is|are|was|were) (?:no (?!longer\b|more\b|doubt\b|"
         r"good\b|use\b|such\b|different\b)[a-z]|"
         r"none\b)", "\"is not a …\", \"has no …\", \"does not …\"",
         unless=r"\bthere (?:is|are|was|were) no|\b(?:if|when|while) there"),
    Rule("colon-if", r"(?:^|(?<=[.;,(] ))(?:0|[Zz]ero|[Ee]mpty|[Nn]il|[Nn]ull|[Ff]alse|[Tt]rue|[Aa]bsent|"
         r"[Uu]nknown|[Aa]gain|"
         r"[Nn]o day|[Nn]one|[Ww]ithout(?: it)?|[Bb]eyond it|[Aa]lone): (?=[\w\u25a1])",
         "write the condition: \"Set to 0 for no limit\", \"If empty, …\", \"Defaults to …\"", areas=SHOWN),
    Rule("colon-if", r"^(?:Zero|Empty|Nil|Null|False|True|Absent|Unknown|Again|None|Without): (?=\w)",
         "write the condition: \"0 means no limit\", \"It returns NotFound if …\"", areas=("comments",)),
    Rule("when-absent", r"\b(?:when|if|where) (?:absent|it is absent|none is given|left out|not there)\b|"
         r", when absent",
         "\"Defaults to …\" or \"Optional.\""),
    Rule("riddle-heading", r"^(?:Who|What|How|Whom|Which)\b.*\b(?:it|they|them|is|are|was|became|of)\b(?!.*\?$)",
         "a heading names the thing: \"Audience\", \"Content\", \"Pre-send checks\", \"Delivery status\"",
         kinds=("heading",), unless=r"^(?:how|what|when|where|why) (?:to|you|postroom)\b|^what replies mean"),
    Rule("ends-with-prep", r"\b(?:which|that|whose|whom|what) [^,.;:]{4,50} (?:of|about|by|with|from)\.$",
         "end on the noun, not on the preposition", areas=SHOWN,
         unless=r"asked for\.|signed up for|opted in|relies on\.|log(?:s|ged)? in\."),
    Rule("such-as-they", r"\bsuch as (?:they|it|those|these|when|after|for|while|where|if|in|on|from|by) ",
         "\"for example when …\", or name the thing"),
    Rule("nobody", r"(?<![Mm]ail )\b[Nn]obody (?:is|was|gets|needs|learns|knows|has|may|waits|wants|of|"
         r"had|who)\b(?! (?:subscribed|else)\b)|"
         r"\b[Nn]othing (?:of|waits|is known|became known|was reported|is (?:made|asked|told))\b",
         "turn it round: \"X does not …\", \"no one receives …\"",
         areas=("docs", "pages", "cli", "openapi", "replies")),
    Rule("also-after", r"\b(?:too|also)[,;:] (?:also|too)\b|, also (?:that|one|of|with|from|not|in|by|those|"
         r"if|when|who)\b",
         "\"including\", \"even\", or a sentence of its own"),
    Rule("as-of", r"\bas (?:of|with|for|on) (?:a|an|the|all|every|other|any) [a-z]+\b[,.;)]|"
         r"\b[Aa]s (?:of a|ever)\b[.;)]|"
         r"\bas the settings? says?\b|\bas (?:they|it) stands?\b",
         "\"like a …\", \"as usual\", \"the default setting\"",
         unless=r"\bas of (?:version|the (?:date|time))|as for the"),
    Rule("long", r".", "more than %d words: split it" % MAX_WORDS,
         kinds=("prose", "item", "comment", "message", "help", "doc", "label")),
]

# Words to avoid: pattern, the field's words, areas. README.md lists the most frequent ones.
WORDS = [
    (r"(?<!s)(?<!all)(?<!much)(?<!many)(?<!more) at once\b", "immediately; at the same time", ALL),
    (r"\bfor good\b", "permanently", ALL),
    (r"\banew\b|\bafresh\b", "again", ALL),
    (r"\bin (?:its|their|his) place\b|\bin place of\b", "instead of", ALL),
    (r"(?<!not )\bby (?:itself|themselves)\b", "automatically, on its own", ALL),
    (r"\bmeanwhile\b", "in the meantime; while …", SHOWN),
    (r"\ball the same\b", "anyway, still", ALL),
    (r"\b(?:hand|hands|handed|handing) (?:in|it in|them in|back|over)\b", "submit, send, pass", ALL),
    (r"\b(?:go|goes|went|going|gone) on\b(?! (?:to|a|the|the page|line|page)\b)", "continue, resume", ALL),
    (r"\b(?:put|puts|putting) off\b", "defer, deferred", ALL),
    (r"\b(?:mend|mends|mended|mending)\b", "fix, repair", ALL),
    (r"\bfaults?\b", "error, problem, invalid field", SHOWN),
    (r"\btroubles?\b", "problem, issue", SHOWN),
    (r"\b(?:it|gateway|relay|endpoint|one|which|that|and|gateways|endpoints|relays) rests?\b|"
     r"\bresting\b|\brests (?:until|for|after|between|while)\b|"
     r"\b(?:its|each|their) rest\b(?! of)",
     "paused after failures; circuit open; cool-down", ALL),
    (r"(?<!send )(?<!returns )\bmails\b(?! (?:it|them|the|a|each|one|to|everyone|everybody|what|"
     r"nobody|its|him|her|sheets|people|that|all|every|you)\b)",
     "emails, messages", ALL),
    (r"\bpersons\b", "people, users", ALL),
    (r"\bstrangers?\b", "unauthenticated client, anonymous visitor", SHOWN),
    (r"\bfacts?\b(?! that\b)", "feedback event, report", SHOWN),
    (r"\b(?:digest |the |a |its |their |new )[Kk]inds?\b(?! of\b)|\b[Kk]inds of digests\b|\bNew kind\b",
     "category settings", ("docs", "pages", "cli", "openapi")),
    (r"\blanes?\b", "stream (keep `lane` only as the field's name)", ("pages", "docs")),
    (r"\b(?:a|the|each|every|no|its|two|taken|of|claimed|this|that|other|whose|new|as a) sheets?\b|"
     r"\bsheets? (?:is|are|of|that)\b",
     "batch", ALL),
    (r"\b(?:a|the|each|its|makes?|no|of|this|another) walks?\b|\bwalks (?:the|are|of|is)\b",
     "scan, pass over the audience", ("comments", "logs", "docs")),
    (r"\bpostm[ae]n\b|\bshelf\b|\bshelves\b|\bshelved\b|\bthaw(?:s|ed)?\b|\benliven\w*|\bheeds?\b|"
     r"\bpoke[sd]?\b",
     "sender goroutine, cache, restore, register, wake", ("comments", "logs")),
    (r"\bway(?:s)? to leave\b|\bwho (?:has )?left\b|\bleft the list\b|\bto leave\b|\bleaving\b",
     "unsubscribe, unsubscribed", SHOWN),
    (r"\bin words\b(?!\.\w)|\b(?:the|and|or|other) words of\b|\b(?:other|its|these|own|which) words\b|"
     r"\bwhat it says\b|^The words\b",
     "text, wording, content, description", ALL),
    (r"\bwhose turn\b|\btheir turn\b|\bits turn\b", "before they were processed", SHOWN),
    (r"\b(?:has|have|had|is|are) (?:got|gotten)\b", "received", ALL),
    (r"\b(?:[Tt]o|[Nn]othing) begin (?:with|to count)\b|\b(?:begin|begins|began) (?:it|to count|"
     r"to erase|to send)\b",
     "start", SHOWN),
    (r"\bin a time\b|\bfor a time\b(?! of)|\bor at a time\b",
     "per minute, for a while, at a scheduled time", SHOWN),
    (r"\bby a cron\b|\bby hand\b of\b|\bby (?:another|the) way\b",
     "with a cron expression; in another way", ALL),
    (r"\bgood as (?:any|it)\b|\bso it does\b|\b[Ss]o (?:is|are) (?:the|its|a)\b", "say it in full", SHOWN),
    (r"\b[Ss]ay (?:which|how long|whether|what|when|why|where|who)\b|"
     r"\b[Ss]ays? (?:whether|how|why|what|when|who|which)\b",
     "show, report, explain, specify", ("cli", "openapi", "pages")),
    (r"\btak(?:e|es|en|ing) (?:in\b(?! (?:redis|memory|a|the|all|this|that)\b)|apart\b|back\b|along\b)",
     "accept, split, delete, include", ALL),
    (r"\bhas to do\b|\bhow far it is\b|\bhow far\b", "progress, status", SHOWN),
    (r"\bbeside\b(?! (?:it|each|them|the (?:bars?|subject|title|name))\b)",
     "next to, in addition to, with", ALL),
    (r"\b[Tt]he (?:same|latest|newest|oldest|best|most frequent|strongest|most important) first\b|"
     r", the \w+ first\b",
     "newest first, sorted by …", SHOWN),
    (r"\bwants? (?:of|no|less|none)\b", "needs, requires, chooses", ("docs", "pages", "comments")),
    (r"\b(?:is|are|was|were) (?:away|at work|at it)\b", "unavailable, in progress, running", SHOWN),
    (r"\b(?:is|are|be|was|were) (?:not )?mailed\b|\bto be mailed\b",
     "sent (the email), emailed (the person)", ("pages", "cli", "openapi", "docs", "messages")),
    (r"\bbest is\b|\bit is as\b|\bnone is\b(?! due)", "say it in full", SHOWN),
    (r"\bThe same: ", "Also available as (in a foldable \"API and CLI\")", ("pages",)),
    (r"\b(?:lets?|letting|let) go of\b|\bstri(?:kes?|cken)\b", "release, remove", ALL),
]
WORD_RULES = [(re.compile(p, re.I), advice, areas) for p, advice, areas in WORDS]

ABBREV = re.compile(r"\b(?:e\.g|i\.e|etc|vs|cf|approx|no|fig|sec|min|max|St|Mr|Ms|Dr)\.$", re.I)


def sentences(text):
    """sentences yields (offset, sentence)."""
    start = 0
    for m in re.finditer(r"[.!?][\"')\u201d]?(?=\s+[A-Z\u25a1\"(\u201c0-9]|\s*$)", text):
        if ABBREV.search(text[start:m.end()]):
            continue
        yield start, text[start:m.end()].strip()
        start = m.end()
        while start < len(text) and text[start] == " ":
            start += 1
    if text[start:].strip():
        yield start, text[start:].strip()


def words_of(s):
    return re.findall(r"[A-Za-z][A-Za-z'\u2019-]*", s)


DOUBLE = re.compile(r"\b([a-z-]{3,}) of ((?:(?:the|a|an|its|their|this|that|each|every|all|one|your|our|those|"
                    r"these|several|other|some) )?"
                    r"(?:[a-z-]+ )?[a-z-]+) of (?=[a-z" + CODE + r"])")
COUNT_RE = re.compile(COUNT + "$")


def check(text):
    """check yields (offset, rule, advice, excerpt) for a Text."""
    if not text.text or len(words_of(text.text)) < 2:
        return
    seen = set()
    for at, s in sentences(text.text):
        for r in RULES:
            if text.area not in r.areas or (r.kinds and text.kind not in r.kinds):
                continue
            if r.name == "long":
                n = len(words_of(re.sub(r"\([^)]*\)", "", s)))
                if n > MAX_WORDS and s.count(",") < 9 and re.search(r"\b(?:the|a|an|is|are|to)\b", s):
                    yield at, r.name, r.advice, s[:100]
                continue
            if r.name == "double-of":
                for m in DOUBLE.finditer(s):
                    second = m.group(2).split()[-1]
                    if COUNT_RE.fullmatch(m.group(1)) or COUNT_RE.fullmatch(second):
                        continue
                    yield at + m.start(), r.name, r.advice, m.group() + s[m.end():m.end() + 20]
                continue
            if r.name == "headless" and text.kind not in ("prose", "item") and len(words_of(s)) < 3:
                continue
            m = r.re.search(s)
            if not m or (r.unless and r.unless.search(s)):
                continue
            if r.name == "headless" and text.kind == "cell" and len(s) < 40 and \
                    re.match(r"(What|Which) (?:it|is|to)\b", s):
                continue
            yield at + m.start(), r.name, r.advice, s[max(0, m.start() - 20):m.start() + 80]
        for rx, advice, areas in WORD_RULES:
            if text.area not in areas:
                continue
            m = rx.search(s)
            if m and (m.group().lower(), at) not in seen:
                seen.add((m.group().lower(), at))
                yield (at + m.start(), "word", "\"%s\": %s" % (m.group().strip(), advice),
                       s[max(0, m.start() - 30):m.end() + 50])


# --- Files and output --------------------------------------------------------------------------------------

SKIP = re.compile(r"(^|/)(testdata|node_modules|vendor|fixtures)/|_test\.go$|^docs/redis-keys\.md$|^tools/|^bench/|"
                  r"^internal/test|^CHANGELOG\.md$")
KNOWN = re.compile(r"\.(md|html|go|lua)$|replies/table\.txt$|openapi[^/]*\.json$")


def files(args):
    if not args:
        out = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"],
                             capture_output=True, text=True)
        if out.returncode != 0:
            sys.exit("english-lint: not in a git repository: name files or folders")
        return [f for f in sorted(set(out.stdout.split("\n")))
                if KNOWN.search(f) and not SKIP.search(f) and os.path.exists(f)]
    found = []
    for a in args:
        if os.path.isdir(a):
            for root, dirs, names in os.walk(a):
                dirs.sort()
                for n in sorted(names):
                    f = os.path.join(root, n)
                    if KNOWN.search(f) and not SKIP.search(f):
                        found.append(f)
        elif os.path.exists(a):
            found.append(a)
        else:
            print("english-lint: no such file: " + a, file=sys.stderr)
            sys.exit(2)
    return found


def show(hits):
    for f, line, _, rule, advice, excerpt in hits:
        print("%s:%d: %s: %s\n    %s" % (f, line, rule, advice, excerpt))


def within(stored, hits, by_file):
    """within reports whether no file has more hits than stored, and prints those of the files that do."""
    limits = {}
    for line in source(stored).split("\n"):
        f, _, n = line.strip().rpartition(" ")
        if f:
            limits[f] = int(n)
    worse = [f for f, n in sorted(by_file.items()) if n > limits.get(f, 0)]
    for f in worse:
        show([h for h in hits if h[0] == f])
        print("%s: %d hits, %d allowed\n" % (f, by_file[f], limits.get(f, 0)))
    better = [f for f, n in sorted(limits.items()) if n > by_file[f]]
    if worse:
        print("Rewrite these sentences as tools/english/README.md says, or mark a line with english:ok.")
    elif better:
        print("%d files have fewer hits than %s allows. Lower the counts:\n"
              "  python3 tools/english/english-lint.py --write %s" % (len(better), stored, stored))
    return not worse


def main():
    p = argparse.ArgumentParser(description="Find the mechanical signs of unnatural English.")
    p.add_argument("paths", nargs="*")
    p.add_argument("--rule", help="show only this rule")
    p.add_argument("--area", help="show only this area: " + ", ".join(ALL))
    p.add_argument("--counts", action="store_true", help="print only the counts, by area and rule")
    p.add_argument("--files", action="store_true", help="print only the counts, by file")
    p.add_argument("--sample", type=int, metavar="N", help="print N hits at random")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--write", metavar="FILE", help="store the counts")
    p.add_argument("--limit", metavar="FILE", help="exit 1 if a file has more hits than stored")
    p.add_argument("--strict", action="store_true", help="exit 1 if there is any hit")
    a = p.parse_args()

    hits, words, you = [], Counter(), Counter()
    for f in files(a.paths):
        src = source(f)
        lines = src.split("\n")
        for t in read(f, src):
            words[t.area] += len(words_of(t.text))
            you[t.area] += len(re.findall(r"\b(?:you|your|yours)\b", t.text, re.I))
            for at, rule, advice, excerpt in check(t):
                line = t.line(at)
                if "english:ok" not in lines[line - 1]:
                    hits.append((f, line, t.area, rule, advice, excerpt))
    hits = [h for h in hits if (not a.rule or h[3] == a.rule) and (not a.area or h[2] == a.area)]
    hits = sorted(set(hits), key=lambda h: (h[0], h[1], h[3]))

    by_file = Counter(h[0] for h in hits)
    if a.write:
        with open(a.write, "w", encoding="utf-8") as out:
            for f in sorted(by_file):
                out.write("%s %d\n" % (f, by_file[f]))
    failed = a.strict and bool(hits)
    if a.limit:
        failed = not within(a.limit, hits, by_file) or failed
    elif a.files:
        for f, n in by_file.most_common():
            print("%6d  %s" % (n, f))
    elif a.sample:
        random.seed(a.seed)
        for h in random.sample(hits, min(a.sample, len(hits))):
            print("%s:%d: [%s] %s: %s\n    %s" % (h[0], h[1], h[2], h[3], h[4], h[5]))
    elif not a.counts and not a.write:
        show(hits)

    if not a.limit and not a.sample:
        rules = Counter((h[2], h[3]) for h in hits)
        names = sorted({h[3] for h in hits})
        areas = [x for x in ALL if words[x]]
        print("\n%-16s" % "rule" + "".join("%9s" % x for x in areas) + "%9s" % "total")
        for r in names:
            print("%-16s" % r + "".join("%9d" % rules[(x, r)] for x in areas) +
                  "%9d" % sum(rules[(x, r)] for x in areas))
        total = [sum(rules[(x, r)] for r in names) for x in areas]
        print("%-16s" % "total" + "".join("%9d" % n for n in total) + "%9d" % sum(total))
        print("%-16s" % "words" + "".join("%9d" % words[x] for x in areas) + "%9d" % sum(words.values()))
        for name, numbers in ("hits", total), ("you", [you[x] for x in areas]):
            print("%-16s" % (name + "/1000 words") +
                  "".join("%9.1f" % (1000 * n / max(1, words[x])) for n, x in zip(numbers, areas)))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
