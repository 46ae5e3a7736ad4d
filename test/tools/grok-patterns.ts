import { GROK_PATTERNS } from "../../controller/areas/rules/grok/known-patterns.ts";
import { compileGrok } from "../../controller/areas/rules/grok/grok.ts";

/** A text that the whole pattern matches. */
const SAMPLES: Readonly<Record<string, string>> = {
  USERNAME: "ann.lee-2",
  USER: "ann",
  EMAILADDRESS: "ann@example.org",
  INT: "-42",
  POSINT: "42",
  NONNEGINT: "0",
  BASE10NUM: "-0.5",
  NUMBER: "3.14",
  BASE16NUM: "0xff",
  BOOLEAN: "true",
  WORD: "disk",
  NOTSPACE: "a/b:c",
  SPACE: "   ",
  DATA: "as little as possible",
  GREEDYDATA: "all the rest",
  QUOTEDSTRING: '"a \\"b\\""',
  QS: "'a'",
  UUID: "0f8fad5b-d9cb-469f-a165-70867728950e",
  MAC: "00:1b:44:11:3a:b7",
  IPV4: "10.0.0.1",
  IPV6: "fe80::1",
  IP: "10.0.0.1",
  HOSTNAME: "web-1.example.org",
  HOST: "web-1",
  IPORHOST: "10.0.0.1",
  HOSTPORT: "web-1:8080",
  UNIXPATH: "/var/log/app.log",
  WINPATH: "C:\\logs\\app.log",
  PATH: "/var/log",
  TTY: "/dev/pts/0",
  URIPROTO: "https",
  URIHOST: "example.org:8443",
  URIPATH: "/a/b.html",
  URIPARAM: "?q=1&r=2",
  URIPATHPARAM: "/a?q=1",
  URI: "https://ann@example.org:8443/a?q=1",
  MONTH: "November",
  MONTHNUM: "11",
  MONTHNUM2: "07",
  MONTHDAY: "23",
  DAY: "Monday",
  YEAR: "2026",
  HOUR: "23",
  MINUTE: "59",
  SECOND: "59.250",
  TIME: "10:15:02",
  DATE_US: "11/23/2026",
  DATE_EU: "23.11.2026",
  DATE: "23.11.2026",
  TZ: "UTC",
  ISO8601_TIMEZONE: "+02:00",
  TIMESTAMP_ISO8601: "2026-11-23T10:15:02.250Z",
  DATESTAMP: "23.11.2026 10:15:02",
  HTTPDATE: "23/Nov/2026:10:15:02 +0000",
  HTTPDERROR_DATE: "Mon Nov 23 10:15:02.250250 2026",
  DATESTAMP_RFC822: "Mon Nov 23 2026 10:15:02 UTC",
  DATESTAMP_RFC2822: "Mon, 23 Nov 2026 10:15:02 +0000",
  DATESTAMP_OTHER: "Mon Nov 23 10:15:02 UTC 2026",
  DATESTAMP_EVENTLOG: "20261123101502",
  DATESTAMP_SLASH: "2026/11/23 10:15:02",
  PROG: "sshd",
  SYSLOGTIMESTAMP: "Nov 23 10:15:02",
  SYSLOGPROG: "sshd[4711]",
  SYSLOGHOST: "web-1",
  SYSLOGFACILITY: "<4.6>",
  SYSLOGBASE: "Nov 23 10:15:02 web-1 sshd[4711]:",
  SYSLOGLINE: "Nov 23 10:15:02 web-1 sshd[4711]: session opened",
  SYSLOG5424PRI: "<165>",
  SYSLOG5424PRINTASCII: "web-1",
  SYSLOG5424SD: '[origin@32473 ip="10.0.0.1"]',
  SYSLOG5424BASE: '<165>1 2026-11-23T10:15:02.250Z web-1 app 4711 ID47 [a@32473 b="c\\"]d"]',
  SYSLOG5424LINE: "<34>1 2026-11-23T10:15:02.250Z web-1 su - ID47 - session opened",
  CRON_ACTION: "CMD",
  CRONLOG: "Nov 23 10:15:02 web-1 CRON[4711]: (root) CMD (run-parts /etc/cron.hourly)",
  LOGLEVEL: "WARNING",
  COMMONAPACHELOG: '10.0.0.1 - ann [23/Nov/2026:10:15:02 +0000] "GET /a HTTP/1.1" 200 512',
  COMBINEDAPACHELOG: '10.0.0.1 - - [23/Nov/2026:10:15:02 +0000] "GET /a HTTP/1.1" 200 - "-" "curl/8"',
  HTTPD20_ERRORLOG: "[Mon Nov 23 10:15:02 2026] [error] [client 10.0.0.1] File does not exist: /srv/a",
  HTTPD24_ERRORLOG:
    "[Mon Nov 23 10:15:02.250250 2026] [core:error] [pid 4711:tid 99] [client 10.0.0.1:5100] AH00037: Symbolic link not allowed",
  HTTPD_ERRORCODE: "AH00037",
  HTTPD_ERRORLOG: "[Mon Nov 23 10:15:02.250250 2026] [mpm_event:notice] [pid 4711] AH00489: resuming normal operations",
  NGINXACCESS: '10.0.0.1 - - [23/Nov/2026:10:15:02 +0000] "GET /a HTTP/1.1" 200 512 "-" "curl/8" "10.0.0.9"',
  NGINXERROR:
    '2026/11/23 10:15:02 [error] 4711#99: *7 open() "/srv/a" failed (2: No such file), client: 10.0.0.1, server: example.org, request: "GET /a HTTP/1.1", host: "example.org"',
  HAPROXYDATE: "23/Nov/2026:10:15:02.250",
  HAPROXYCONNECTIONS: "1/1/0/1/0 0/0",
  HAPROXYPLACES: "10.0.0.1:33317 [23/Nov/2026:10:15:02.250] http-in static/web-1",
  HAPROXYNAME: "static",
  HAPROXYHTTPBASE:
    '10.0.0.1:33317 [23/Nov/2026:10:15:02.250] http-in static/web-1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 {example.org} {} "GET /index.html HTTP/1.1"',
  HAPROXYTCPBASE: "10.0.0.1:33317 [23/Nov/2026:10:15:02.250] db db/db-1 0/0/5007 212 -- 0/0/0/0/3 0/0",
  HAPROXYHTTP:
    'Nov 23 10:15:02 lb-1 haproxy[4711]: 10.0.0.1:33317 [23/Nov/2026:10:15:02.250] http-in static/<NOSRV> -1/-1/-1/-1/0 400 187 - - PR-- 2/2/0/0/0 0/0 "<BADREQ>"',
  HAPROXYTCP:
    "Nov 23 10:15:02 lb-1 haproxy[4711]: 10.0.0.1:33317 [23/Nov/2026:10:15:02.250] db db/db-1 0/0/5007 212 -- 0/0/0/0/3 0/0",
  JAVACLASS: "com.example.App$Inner",
  JAVAMETHOD: "<init>",
  JAVAFILE: "App.java",
  JAVASTACKTRACEPART: "\tat com.example.App.run(App.java:42)",
  JAVALOG: "2026-11-23 10:15:02,250 [main] WARN com.example.App - disk is full",
  SPRINGBOOTLOG: "2026-11-23T10:15:02.250Z  INFO 4711 --- [shop] [           main] c.example.App : started",
  CATALINA_DATESTAMP: "23-Nov-2026 10:15:02.250",
  CATALINALOG:
    "23-Nov-2026 10:15:02.250 INFO [main] org.apache.catalina.startup.Catalina.start Server startup in [812] ms",
  PYTHONLOG: "2026-11-23 10:15:02,250 - shop.cart - ERROR - disk is full",
  GOLOG: "2026/11/23 10:15:02.250250 main.go:42: disk is full",
  GOFILE: "main.go",
  POSTGRESQLLOG: '2026-11-23 10:15:02.250 UTC [4711] ann@shop ERROR:  relation "cart" does not exist',
};

/** The page of the standard set: each pattern with a text that it matches as a whole, and what it captures of it. */
export function grokPatterns(): string {
  return [
    "# The standard patterns of grok",
    "",
    "For [grok](grok.md), by their customary names. Each with a text that it matches as a whole, and what it captures besides. Generated by `npm run gen`, which runs the examples.",
    "",
    "| Pattern | Matches | Captures |",
    "| --- | --- | --- |",
    ...Object.entries(GROK_PATTERNS).map(([name, pattern]) => row(name, pattern)),
    "",
  ].join("\n");
}

function row(name: string, pattern: string): string {
  const sample = SAMPLES[name] ?? "";
  const captured = compileGrok(`^(?:${pattern})$`).match(sample);
  if (sample === "" || captured === undefined) throw new Error(`The sample of ${name} does not fit.`);
  const named = Object.entries(captured).filter(([field]) => !Object.hasOwn(GROK_PATTERNS, field));
  const fields = named.length === 0 ? "" : `\`${JSON.stringify(Object.fromEntries(named))}\``;
  return `| \`${name}\` | \`${sample}\` | ${fields} |`.replaceAll("\\|", "|");
}
