/**
 * The standard grok patterns by their usual names, for a regular-expression engine with linear time: without
 * look-around and atomic groups. A pattern refers to others as `%{NAME}` or `%{NAME:field}`.
 */
export const GROK_PATTERNS: Readonly<Record<string, string>> = {
  USERNAME: "[a-zA-Z0-9._-]+",
  USER: "%{USERNAME}",
  EMAILADDRESS: "[a-zA-Z0-9!#$%&'*+/=?^_`{|}~.-]+@%{HOSTNAME}",
  INT: "[+-]?\\d+",
  POSINT: "\\d+",
  NONNEGINT: "\\d+",
  BASE10NUM: "[+-]?(?:\\d+(?:\\.\\d*)?|\\.\\d+)",
  NUMBER: "%{BASE10NUM}",
  BASE16NUM: "[+-]?(?:0x)?[0-9A-Fa-f]+",
  BOOLEAN: "(?:true|false|TRUE|FALSE|True|False)",
  WORD: "\\b\\w+\\b",
  NOTSPACE: "\\S+",
  SPACE: "\\s*",
  DATA: ".*?",
  GREEDYDATA: ".*",
  QUOTEDSTRING: "(?:\"(?:\\\\.|[^\\\\\"])*\"|'(?:\\\\.|[^\\\\'])*'|`(?:\\\\.|[^\\\\`])*`)",
  QS: "%{QUOTEDSTRING}",
  UUID: "[A-Fa-f0-9]{8}-(?:[A-Fa-f0-9]{4}-){3}[A-Fa-f0-9]{12}",

  MAC: "(?:[A-Fa-f0-9]{2}[:-]){5}[A-Fa-f0-9]{2}",
  IPV4: "(?:(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)\\.){3}(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)",
  IPV6: "(?:[0-9A-Fa-f]*:){2,7}(?:[0-9A-Fa-f]+|%{IPV4})?(?:%\\w+)?",
  IP: "(?:%{IPV6}|%{IPV4})",
  HOSTNAME: "\\b[0-9A-Za-z][0-9A-Za-z-]*(?:\\.[0-9A-Za-z][0-9A-Za-z-]*)*\\.?",
  HOST: "%{HOSTNAME}",
  IPORHOST: "(?:%{IP}|%{HOSTNAME})",
  HOSTPORT: "%{IPORHOST}:%{POSINT}",

  UNIXPATH: "(?:/[\\w_%!$@:.,+~-]*)+",
  WINPATH: "(?:[A-Za-z]+:|\\\\)(?:\\\\[^\\\\?*]*)+",
  PATH: "(?:%{UNIXPATH}|%{WINPATH})",
  TTY: "/dev/(?:pts|tty[pq]?)\\w*(?:/\\w+)*",
  URIPROTO: "[A-Za-z][A-Za-z0-9+.-]+",
  URIHOST: "%{IPORHOST}(?::%{POSINT})?",
  URIPATH: "(?:/[A-Za-z0-9$.+!*'(){},~:;=@#%&_-]*)+",
  URIPARAM: "\\?[A-Za-z0-9$.+!*'|(){},~@#%&/=:;_?\\[\\]<>-]*",
  URIPATHPARAM: "%{URIPATH}(?:%{URIPARAM})?",
  URI: "%{URIPROTO}://(?:%{USER}(?::[^@]*)?@)?(?:%{URIHOST})?(?:%{URIPATHPARAM})?",

  MONTH:
    "\\b(?:[Jj]an(?:uary)?|[Ff]eb(?:ruary)?|[Mm]ar(?:ch)?|[Aa]pr(?:il)?|[Mm]ay|[Jj]une?|[Jj]uly?|[Aa]ug(?:ust)?|[Ss]ep(?:tember)?|[Oo]ct(?:ober)?|[Nn]ov(?:ember)?|[Dd]ec(?:ember)?)\\b",
  MONTHNUM: "(?:0?[1-9]|1[0-2])",
  MONTHNUM2: "(?:0[1-9]|1[0-2])",
  MONTHDAY: "(?:0[1-9]|[12]\\d|3[01]|[1-9])",
  DAY: "(?:Mon(?:day)?|Tue(?:sday)?|Wed(?:nesday)?|Thu(?:rsday)?|Fri(?:day)?|Sat(?:urday)?|Sun(?:day)?)",
  YEAR: "(?:\\d\\d)?\\d\\d",
  HOUR: "(?:2[0123]|[01]?\\d)",
  MINUTE: "[0-5]\\d",
  SECOND: "(?:[0-5]?\\d|60)(?:[:.,]\\d+)?",
  TIME: "%{HOUR}:%{MINUTE}(?::%{SECOND})?",
  DATE_US: "%{MONTHNUM}[/-]%{MONTHDAY}[/-]%{YEAR}",
  DATE_EU: "%{MONTHDAY}[./-]%{MONTHNUM}[./-]%{YEAR}",
  DATE: "(?:%{DATE_US}|%{DATE_EU})",
  TZ: "(?:[APMCE][SD]T|UTC|GMT|Z)",
  ISO8601_TIMEZONE: "(?:Z|[+-]%{HOUR}(?::?%{MINUTE})?)",
  TIMESTAMP_ISO8601: "%{YEAR}-%{MONTHNUM}-%{MONTHDAY}[T ]%{HOUR}:?%{MINUTE}(?::?%{SECOND})?%{ISO8601_TIMEZONE}?",
  DATESTAMP: "%{DATE}[- ]%{TIME}",
  HTTPDATE: "%{MONTHDAY}/%{MONTH}/%{YEAR}:%{TIME} %{INT}",
  HTTPDERROR_DATE: "%{DAY} %{MONTH} +%{MONTHDAY} %{TIME} %{YEAR}",
  DATESTAMP_RFC822: "%{DAY} %{MONTH} %{MONTHDAY} %{YEAR} %{TIME} %{TZ}",
  DATESTAMP_RFC2822: "%{DAY}, %{MONTHDAY} %{MONTH} %{YEAR} %{TIME} (?:%{ISO8601_TIMEZONE}|%{TZ})",
  DATESTAMP_OTHER: "%{DAY} %{MONTH} +%{MONTHDAY} %{TIME} %{TZ} %{YEAR}",
  DATESTAMP_EVENTLOG: "\\d{4}%{MONTHNUM2}[0-3]\\d[0-2]\\d[0-5]\\d[0-6]\\d",
  DATESTAMP_SLASH: "%{YEAR}/%{MONTHNUM}/%{MONTHDAY} %{TIME}",

  PROG: "[^\\[\\]\\s/:]+(?:/[^\\[\\]\\s:]+)*",
  SYSLOGTIMESTAMP: "%{MONTH} +%{MONTHDAY} %{TIME}",
  SYSLOGPROG: "%{PROG:program}(?:\\[%{POSINT:pid}\\])?",
  SYSLOGHOST: "%{IPORHOST}",
  SYSLOGFACILITY: "<%{NONNEGINT:facility}.%{NONNEGINT:priority}>",
  SYSLOGBASE:
    "(?:%{SYSLOGTIMESTAMP:timestamp}|%{TIMESTAMP_ISO8601:timestamp8601}) (?:%{SYSLOGFACILITY} )?%{SYSLOGHOST:logsource} %{SYSLOGPROG}:",
  SYSLOGLINE: "%{SYSLOGBASE} %{GREEDYDATA:message}",
  SYSLOG5424PRI: "<%{NONNEGINT:syslog5424_pri}>",
  SYSLOG5424PRINTASCII: "[!-~]+",
  SYSLOG5424SD: '(?:\\[(?:[^\\]\\\\"]|"(?:\\\\.|[^\\\\"])*")*\\])+',
  SYSLOG5424BASE:
    "%{SYSLOG5424PRI}%{NONNEGINT:syslog5424_ver} (?:-|%{TIMESTAMP_ISO8601:syslog5424_ts}) (?:-|%{SYSLOG5424PRINTASCII:syslog5424_host}) (?:-|%{SYSLOG5424PRINTASCII:syslog5424_app}) (?:-|%{SYSLOG5424PRINTASCII:syslog5424_proc}) (?:-|%{SYSLOG5424PRINTASCII:syslog5424_msgid}) (?:-|%{SYSLOG5424SD:syslog5424_sd})",
  SYSLOG5424LINE: "%{SYSLOG5424BASE}(?: \\x{FEFF}?%{GREEDYDATA:syslog5424_msg})?",
  CRON_ACTION: "[A-Z ]+",
  CRONLOG: "%{SYSLOGBASE} \\(%{USER:user}\\) %{CRON_ACTION:action} \\(%{DATA:message}\\)$",
  LOGLEVEL:
    "(?:[Tt]race|TRACE|[Dd]ebug|DEBUG|[Nn]otice|NOTICE|[Ii]nfo(?:rmation)?|INFO(?:RMATION)?|[Ww]arn(?:ing)?|WARN(?:ING)?|[Ee]rr(?:or)?|ERR(?:OR)?|[Cc]rit(?:ical)?|CRIT(?:ICAL)?|[Ff]atal|FATAL|[Ss]evere|SEVERE|[Ee]merg(?:ency)?|EMERG(?:ENCY)?|[Aa]lert|ALERT)",
  COMMONAPACHELOG:
    '%{IPORHOST:clientip} %{NOTSPACE:ident} %{NOTSPACE:auth} \\[%{HTTPDATE:timestamp}\\] "(?:%{WORD:verb} %{NOTSPACE:request}(?: HTTP/%{NUMBER:httpversion})?|%{DATA:rawrequest})" %{INT:response} (?:%{INT:bytes}|-)',
  COMBINEDAPACHELOG: "%{COMMONAPACHELOG} %{QS:referrer} %{QS:agent}",
  HTTPD20_ERRORLOG:
    "\\[%{HTTPDERROR_DATE:timestamp}\\] \\[%{LOGLEVEL:loglevel}\\] (?:\\[client %{IPORHOST:clientip}\\] )?%{GREEDYDATA:message}",
  HTTPD24_ERRORLOG:
    "\\[%{HTTPDERROR_DATE:timestamp}\\] \\[%{WORD:module}?:%{LOGLEVEL:loglevel}\\] \\[pid %{POSINT:pid}(?::tid %{NONNEGINT:tid})?\\] (?:\\[client %{IPORHOST:clientip}(?::%{POSINT:clientport})?\\] )?(?:%{HTTPD_ERRORCODE:errorcode}: )?%{GREEDYDATA:message}",
  HTTPD_ERRORCODE: "AH\\d+",
  HTTPD_ERRORLOG: "(?:%{HTTPD20_ERRORLOG}|%{HTTPD24_ERRORLOG})",

  NGINXACCESS: "%{COMBINEDAPACHELOG}(?: %{QS:forwardedfor})?",
  NGINXERROR:
    "%{DATESTAMP_SLASH:timestamp} \\[%{LOGLEVEL:level}\\] %{POSINT:pid}#%{NONNEGINT:tid}: (?:\\*%{NONNEGINT:connection} )?%{DATA:message}(?:, client: %{IPORHOST:client})?(?:, server: %{DATA:server})?(?:, request: %{QS:request})?(?:, (?:sub)?upstream: %{QS:upstream})?(?:, host: %{QS:host})?(?:, referrer: %{QS:referrer})?$",

  HAPROXYDATE: "%{MONTHDAY}/%{MONTH}/%{YEAR}:%{TIME}",
  HAPROXYCONNECTIONS:
    "%{NONNEGINT:actconn}/%{NONNEGINT:feconn}/%{NONNEGINT:beconn}/%{NONNEGINT:srvconn}/\\+?%{NONNEGINT:retries} %{NONNEGINT:srv_queue}/%{NONNEGINT:backend_queue}",
  HAPROXYPLACES:
    "%{IP:client_ip}:%{POSINT:client_port} \\[%{HAPROXYDATE:accept_date}\\] %{NOTSPACE:frontend_name} %{HAPROXYNAME:backend_name}/%{NOTSPACE:server_name}",
  HAPROXYNAME: "[^\\s/]+",
  HAPROXYHTTPBASE: [
    "%{HAPROXYPLACES}",
    "%{INT:time_request}/%{INT:time_queue}/%{INT:time_backend_connect}/%{INT:time_backend_response}/\\+?%{NONNEGINT:time_duration}",
    "%{INT:http_status_code} \\+?%{NONNEGINT:bytes_read}",
    "%{NOTSPACE:captured_request_cookie} %{NOTSPACE:captured_response_cookie} %{NOTSPACE:termination_state}",
    "%{HAPROXYCONNECTIONS}(?: \\{%{DATA:captured_request_headers}\\})?(?: \\{%{DATA:captured_response_headers}\\})?",
    '"(?:<BADREQ>|%{WORD:http_verb} %{NOTSPACE:http_request}(?: HTTP/%{NUMBER:http_version})?)"?',
  ].join(" "),
  HAPROXYTCPBASE:
    "%{HAPROXYPLACES} %{INT:time_queue}/%{INT:time_backend_connect}/\\+?%{NONNEGINT:time_duration} \\+?%{NONNEGINT:bytes_read} %{NOTSPACE:termination_state} %{HAPROXYCONNECTIONS}",
  HAPROXYHTTP: "%{SYSLOGBASE} %{HAPROXYHTTPBASE}",
  HAPROXYTCP: "%{SYSLOGBASE} %{HAPROXYTCPBASE}",

  JAVACLASS: "(?:[A-Za-z_$][\\w$]*\\.)*[A-Za-z_$][\\w$]*",
  JAVAMETHOD: "(?:<init>|<clinit>|[A-Za-z_$][\\w$]*)",
  JAVAFILE: "[\\w. $-]+",
  JAVASTACKTRACEPART: "\\s*at %{JAVACLASS:class}\\.%{JAVAMETHOD:method}\\(%{JAVAFILE:file}(?::%{POSINT:line})?\\)",
  JAVALOG:
    "%{TIMESTAMP_ISO8601:timestamp} +(?:\\[%{DATA:thread}\\] +)?%{LOGLEVEL:level} +(?:\\[%{DATA:thread}\\] +)?(?:%{JAVACLASS:class} *[:-] +)?%{GREEDYDATA:message}",
  SPRINGBOOTLOG:
    "%{TIMESTAMP_ISO8601:timestamp} +%{LOGLEVEL:level} %{POSINT:pid} --- (?:\\[%{DATA:application}\\] )?\\[ *%{DATA:thread}\\] %{JAVACLASS:class} *: %{GREEDYDATA:message}",
  CATALINA_DATESTAMP: "%{MONTHDAY}-%{MONTH}-%{YEAR} %{TIME}",
  CATALINALOG:
    "%{CATALINA_DATESTAMP:timestamp} %{LOGLEVEL:level} \\[%{DATA:thread}\\] %{JAVACLASS:class}\\.%{JAVAMETHOD:method} %{GREEDYDATA:message}",
  PYTHONLOG: "%{TIMESTAMP_ISO8601:timestamp} - %{NOTSPACE:logger} - %{LOGLEVEL:level} - %{GREEDYDATA:message}",
  GOLOG: "%{DATESTAMP_SLASH:timestamp} (?:%{GOFILE:file}:%{POSINT:line}: )?%{GREEDYDATA:message}",
  GOFILE: "[^\\s:]+\\.go",
  POSTGRESQLLOG:
    "%{TIMESTAMP_ISO8601:timestamp} %{WORD:zone} \\[%{POSINT:pid}\\] (?:%{USER:user}@%{NOTSPACE:database} )?%{WORD:level}: +%{GREEDYDATA:message}",
};
