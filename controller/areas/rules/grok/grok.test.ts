import { describe, expect, it } from "vitest";
import { classView } from "../../../../test/helpers/mql/class-views.ts";
import { compileRule } from "../definitions/compile.ts";
import { compileGrok, patternsReached } from "./grok.ts";
import { grokTrial } from "./trial.ts";

const READ = Date.parse("2026-11-29T12:00:00Z");

describe("a grok expression", () => {
  it.each([
    [
      "%{INT:x:long}",
      'The grok reference "%{INT:x:long}" has an unknown type: there are int, float, string, timestamp.',
    ],
    ["%{INT:x:}", "has an unknown type"],
    ["a %{INT:x", 'The grok reference "%{INT:x" has no closing brace.'],
    ["%{INT:x and %{INT:y}", 'The grok reference "%{INT:x and %" has no closing brace.'],
    ["%{}", '"%{}" is no grok reference'],
    ["%{INT:}", "is no grok reference"],
    ["%{two words}", "is no grok reference: write %{PATTERN}, %{PATTERN:name} or %{PATTERN:name:type}."],
    ["%{NOPE}", "There is no grok pattern named NOPE."],
  ])("%j is refused and says why", (expression, reason) => {
    expect(() => compileGrok(expression)).toThrow(reason);
  });

  it("is refused within users' patterns, too, and takes a brace behind a percent sign with a backslash", () => {
    expect(() => compileGrok("%{OWN}", { OWN: "%{INT:x:long}" })).toThrow("unknown type");
    expect(compileGrok("100%\\{%{INT:x}\\}").match("100%{5}")).toEqual({ x: "5" });
  });

  it("keeps what a pattern that users named QS matches as it is", () => {
    const own = { QS: "\\S+", QUOTEDSTRING: "\\w+" };
    expect(compileGrok("%{QS:a} %{QUOTEDSTRING:b}", own).match("hello world")).toEqual({ a: "hello", b: "world" });
  });

  it("keeps texts in quotes without them, and what is empty between them not at all", () => {
    const grok = compileGrok("%{QS:agent} %{QUOTEDSTRING} (%{QS:both})?");
    expect(grok.match(`"curl/8" 'it' \`a\``)).toEqual({ agent: "curl/8", QUOTEDSTRING: "it", both: "a" });
    expect(grok.match(`"say \\"x\\"" '' `)).toEqual({ agent: 'say \\"x\\"' });
  });

  it("keeps what is called as a member that every object has, by a reference or a group", () => {
    const names = ["constructor", "toString", "__proto__"];
    for (const group of ["", " (?<own>\\S+)"]) {
      const grok = compileGrok(`${names.map((name) => `%{WORD:${name}}`).join(" ")}${group}`);
      const fields = grok.match("a b c d") ?? {};
      expect(Object.entries(fields)).toEqual([
        ...names.map((name, at) => [name, "abc"[at]]),
        ...(group === "" ? [] : [["own", "d"]]),
      ]);
    }
  });

  it("keeps a time as a text of ISO 8601, and what is none as it is", () => {
    const zoned = compileRule(
      "--class=/ns/a\n--parser=grok\n--pattern_1=%{DATA:at:timestamp}\\|\n--time_zone=Europe/Berlin",
      classView("/ns/a", { at: "varchar" }),
    );
    const parsed = (text: string) => zoned.parse([{ text, timeMs: READ, host: "", source: "", groups: {} }])[0];
    expect(parsed("Jul  1 12:00:00|")).toMatchObject({ values: { at: "2026-07-01T10:00:00.000Z" } });
    expect(parsed("soon|")).toMatchObject({ values: { at: "soon" } });
    const trial = grokTrial({ expression: "%{HTTPDATE:at:timestamp}", patterns: {}, nowMs: READ });
    expect(trial("29/Nov/2026:12:00:00 +0100")).toEqual({ fields: { at: "2026-11-29T11:00:00.000Z" } });
  });

  it("reads a time by the layouts of the rule once, also for a column of times and for --time", () => {
    const rule = (type: "timestamp" | "varchar", option: string) =>
      compileRule(
        `--class=/ns/a\n--parser=grok\n--pattern_1=%{DATA:at:timestamp}\\|%{WORD:note}\n--time_layout=d.M.yyyy\n${option}`,
        classView("/ns/a", { at: type, note: "varchar" }),
      );
    const raw = { text: "7.5.2026|x", timeMs: READ, host: "", source: "", groups: {} };
    const at = Date.parse("2026-05-07T00:00:00Z");
    expect(rule("timestamp", "").parse([raw])).toMatchObject([{ ok: true, values: { at, note: "x" } }]);
    expect(rule("varchar", "--time=at").parse([raw])).toMatchObject([{ ok: true, timeMs: at }]);
  });

  it("means a pattern of users where they named one before the standard set did, but not within the set", () => {
    const own = { JAVACLASS: "mine", NGINXERROR: "%{JAVACLASS:which}" };
    expect(compileGrok("%{NGINXERROR}", own).match("mine")).toMatchObject({ which: "mine" });
    expect(compileGrok("%{JAVASTACKTRACEPART}", own).match("at a.B.c(D.java:5)")).toMatchObject({ class: "a.B" });
    expect(patternsReached(["%{NGINXERROR}"], own)).toEqual(own);
  });
});

const logged = classView("/ns/log", { at: "timestamp" });

/** Lines in the shape that programs write, each with what reads it. */
const PROGRAMS: readonly (readonly [program: string, options: string, line: string, at: string])[] = [
  ["rsyslog", "%{SYSLOGLINE}", "Nov  7 10:15:02 web-1 sshd[4711]: session opened", "2026-11-07T10:15:02Z"],
  [
    "rsyslog of today",
    "%{SYSLOGLINE}\n--var_at=timestamp8601",
    "2026-11-29T10:15:02.123456+01:00 web-1 cron[1]: ok",
    "2026-11-29T09:15:02.123Z",
  ],
  [
    "syslog-ng, RFC 5424",
    "%{SYSLOG5424LINE}\n--var_at=syslog5424_ts",
    '<165>1 2026-11-29T10:15:02.003Z web-1 app - ID47 [a b="c"] \uFEFFup',
    "2026-11-29T10:15:02.003Z",
  ],
  ["kernel", "%{SYSLOGLINE}", "Nov 29 10:15:02 web-1 kernel: [12.5] eth0: link up", "2026-11-29T10:15:02Z"],
  ["cron", "%{CRONLOG}", "Nov 29 10:15:02 web-1 CRON[99]: (root) CMD (run-parts)", "2026-11-29T10:15:02Z"],
  [
    "Apache, access",
    "%{COMBINEDAPACHELOG}",
    '10.0.0.1 - - [29/Nov/2026:10:15:02 -0700] "GET / HTTP/1.1" 200 5 "-" "curl"',
    "2026-11-29T17:15:02Z",
  ],
  [
    "Apache 2.4, errors",
    "%{HTTPD_ERRORLOG}",
    "[Sun Nov 29 10:15:02.123456 2026] [core:error] [pid 7:tid 8] [client 10.0.0.1:5] AH00037: no",
    "2026-11-29T10:15:02.123Z",
  ],
  [
    "Apache 2.2, errors",
    "%{HTTPD_ERRORLOG}",
    "[Sun Nov 29 10:15:02 2026] [error] [client 10.0.0.1] no",
    "2026-11-29T10:15:02Z",
  ],
  [
    "nginx, access",
    "%{NGINXACCESS}",
    '10.0.0.1 - ann [29/Nov/2026:10:15:02 +0000] "GET / HTTP/2.0" 304 0 "-" "curl"',
    "2026-11-29T10:15:02Z",
  ],
  [
    "nginx, errors",
    "%{NGINXERROR}",
    "2026/11/29 10:15:02 [emerg] 7#7: bind() to 0.0.0.0:80 failed (98: Address in use)",
    "2026-11-29T10:15:02Z",
  ],
  [
    "HAProxy, HTTP",
    "%{HAPROXYHTTP}\n--var_at=accept_date",
    'Nov 29 10:15:03 lb haproxy[7]: 10.0.0.1:51 [29/Nov/2026:10:15:02.655] in app/s1 0/0/1/2/3 200 27 - - ---- 1/1/1/1/0 0/0 "GET / HTTP/1.1"',
    "2026-11-29T10:15:02.655Z",
  ],
  [
    "HAProxy, TCP",
    "%{HAPROXYTCP}\n--var_at=accept_date",
    "Nov 29 10:15:03 lb haproxy[7]: 10.0.0.1:51 [29/Nov/2026:10:15:02.655] db db/d1 0/0/5 212 -- 0/0/0/0/0 0/0",
    "2026-11-29T10:15:02.655Z",
  ],
  [
    "log4j",
    "%{JAVALOG}",
    "2026-11-29 10:15:02,250 ERROR [worker-1] com.example.Cart - failed",
    "2026-11-29T10:15:02.250Z",
  ],
  [
    "Spring Boot",
    "%{SPRINGBOOTLOG}",
    "2026-11-29T10:15:02.250+01:00  WARN 7 --- [nio-1] c.e.Cart  : slow",
    "2026-11-29T09:15:02.250Z",
  ],
  ["Tomcat", "%{CATALINALOG}", "29-Nov-2026 10:15:02.250 SEVERE [main] a.b.C.start Failed", "2026-11-29T10:15:02.250Z"],
  ["Python logging", "%{PYTHONLOG}", "2026-11-29 10:15:02,250 - root - ERROR - no", "2026-11-29T10:15:02.250Z"],
  ["Go", "%{GOLOG}", "2026/11/29 10:15:02 main.go:5: no", "2026-11-29T10:15:02Z"],
  ["PostgreSQL", "%{POSTGRESQLLOG}", "2026-11-29 10:15:02.123 CET [7] a@b LOG:  ok", "2026-11-29T10:15:02.123Z"],
  [
    "Redis",
    "%{POSINT:pid}:M %{DATA:timestamp} # %{GREEDYDATA}",
    "7:M 29 Nov 2026 10:15:02.123 # Server started",
    "2026-11-29T10:15:02.123Z",
  ],
  [
    "BIND",
    "%{DATA:timestamp} queries: info: %{GREEDYDATA}",
    "29-Nov-2026 10:15:02.123 queries: info: client",
    "2026-11-29T10:15:02.123Z",
  ],
  [
    "Squid",
    "^%{NUMBER:timestamp} +%{INT} %{IP}",
    "1795947302.123    5 10.0.0.1 TCP_MISS/200 1 GET",
    "2026-11-29T10:15:02.123Z",
  ],
  [
    "Windows, US",
    "^%{DATA:timestamp}\\t\n--time_layout=M/d/yyyy h:mm:ss a",
    "11/29/2026 10:15:02 PM\tInformation",
    "2026-11-29T22:15:02Z",
  ],
];

describe("a rule reads the lines of", () => {
  it.each(PROGRAMS)("%s", (_program, options, line, at) => {
    const mapped = options.includes("--var_at") ? "" : "--var_at=timestamp\n";
    const rule = compileRule(`--class=/ns/log\n--parser=grok\n${mapped}--pattern_1=${options}`, logged);
    const [parsed] = rule.parse([{ text: line, timeMs: READ, host: "web-1", source: "", groups: {} }]);
    expect(parsed).toEqual({ ok: true, ordinal: 0, values: { at: Date.parse(at) } });
  });
});
