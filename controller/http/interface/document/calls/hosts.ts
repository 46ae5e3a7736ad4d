import type { ExampleCalls } from "./types.ts";

const HOST = "web-1";
const RULE = "/matrix/rules/visit";
const DEPOT = { name: "check", version: "1.0.0" };
const CHANGE = { name: "check", version: "1.1.0", filepath: "check.sh", type: "M", content: "#!/bin/sh\nuptime\n" };
const SCRIPT = "#!/bin/sh\ncat /proc/loadavg\n";
const DEPLOYMENT = { hosts: [HOST], depots: ["check"], versions: ["1.0.0"], timeout: 1 };
const AGENTS = { hosts: [HOST], timeout: 1 };
const AGENT = { ...AGENTS, ...DEPOT };
const JOB = "backup@nightly";
const STEP = { sid: "backup-1", name: "step", value: "2", ttl: 3_600 };
const GROUP = { name: "webs", gtype: "group", hosts: [{ host: HOST }] };
const RUN = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

/** Hosts, depots, policies and jobs. */
export const HOST_CALLS: ExampleCalls = {
  "POST /host": { host: HOST, iplist: ["192.0.2.10"], isagent: 1 },
  "GET /host": {},
  "GET /host/:name": { name: HOST },
  "POST /agent/token": { host: HOST, minutes: 60 },
  "GET /agent/token": {},
  "DELETE /agent/token/:id": { id: RUN },
  "POST /agent/enrol": { id: RUN, csr: "-----BEGIN CERTIFICATE REQUEST-----", proof: "0" },
  "POST /group": GROUP,
  "PUT /group": GROUP,
  "GET /group": {},

  "POST /monitoring/depot": { ...DEPOT, remark: "Checks the load", uploadfile: SCRIPT },
  "PUT /monitoring/depot": { name: "check", version: "1.1.0", uploadfile: [SCRIPT] },
  "PUT /monitoring/depot/file": { ...CHANGE, newVersion: "1.2.0" },
  "PUT /monitoring/depot/file/:name": { ...CHANGE, newVersion: "1.3.0" },
  "GET /monitoring/depot": {},
  "GET /monitoring/depot/:name": DEPOT,
  "GET /monitoring/depot/exist/:name": DEPOT,
  "GET /monitoring/depot/file/:name": { ...DEPOT, filepath: "check.sh" },
  "GET /monitoring/depot/diff/:name": { name: "check", version: "1.1.0", compareVersion: "1.2.0" },
  "POST /monitoring/deploy": DEPLOYMENT,
  "POST /monitoring/undeploy": DEPLOYMENT,
  "GET /monitoring/deployment": {},
  "GET /monitoring/deployment/:id": { id: RUN },
  "DELETE /monitoring/deployment/:id": { id: RUN },
  "POST /monitoring/extagent/deploy": { ...AGENT, key: "a pre-shared key", command: "chown zabbix agent.key" },
  "POST /monitoring/extagent/undeploy": AGENT,
  "POST /monitoring/extagent/start": AGENTS,
  "POST /monitoring/extagent/stop": AGENTS,
  "POST /monitoring/extagent/restart": AGENTS,
  "POST /monitoring/zabbix/deploy": { ...AGENT, key: "a pre-shared key", command: "chown zabbix agent.key" },
  "POST /monitoring/zabbix/undeploy": AGENT,
  "POST /monitoring/zabbix/start": AGENTS,
  "POST /monitoring/zabbix/stop": AGENTS,
  "POST /monitoring/zabbix/restart": AGENTS,

  "POST /monitoring/policy": { name: "load", rule: RULE, command: "uptime", ctype: 1, interval: 5, unit: "minute" },
  "POST /monitoring/policy/log": { name: "access", rule: RULE, dir: "/var/log/nginx", match: "access\\.log" },
  "POST /monitoring/policy/preview": { name: "load", host: HOST },
  "PATCH /monitoring/policy/:name": { name: "load", interval: 10 },
  "GET /monitoring/policy": {},
  "GET /monitoring/policy/:name": { name: "load" },
  "POST /monitoring/policy/deploy/:name": { name: "load", hosts: [HOST] },
  "PUT /monitoring/policy/deploy/conf/:name": { name: "load", hosts: [HOST], conf: "warn=4\n" },
  "GET /monitoring/policy/conf/:name": { name: "load" },
  "DELETE /monitoring/policy/undeploy/conf/:name": { name: "load", hosts: [HOST] },
  "GET /monitoring/targets": {},
  "POST /monitoring/targets/confirm": { id: RUN },
  "POST /monitoring/policy/undeploy/:name": { name: "load" },
  "DELETE /monitoring/policy/:name": { name: "load" },
  "DELETE /monitoring/depot/:name": DEPOT,

  "POST /job": { name: "backup", dir: "nightly", exec: ["tar -cf /tmp/etc.tar /etc"], host: [HOST] },
  "PUT /job": { name: "backup", dir: "nightly", schedule: "cron 0 2 * * *; tz=Europe/Berlin" },
  "PATCH /job/*": { "*": "backup@nightly", description: "Dumps of all databases" },
  "POST /job/merge": { name: "backup", dir: "nightly", description: "Every night" },
  "GET /job": {},
  "GET /job/*": { "*": JOB },
  "GET /job/exist/*": { "*": JOB },
  "GET /job/sync": {},
  "GET /job/disable/*": { "*": JOB },
  "GET /job/enable/*": { "*": JOB },
  "GET /job/exec/*": { "*": JOB },
  "POST /job/exec/*": { "*": JOB },
  "POST /job/batch": { jobs: [{ name: JOB, timeout: 60 }] },
  "GET /job/output/:runid/:host": { runid: RUN, host: HOST, from: 0 },
  "POST /job/cancel/:runid": { runid: RUN },
  "GET /job/run/:runid": { runid: RUN },
  "POST /job/retry/:runid": { runid: RUN },
  "POST /job/context/:sid": STEP,
  "PUT /job/context/:sid": STEP,
  "GET /job/context/:sid": { sid: "backup-1" },
  "DELETE /job/context/:sid": { sid: "backup-1", name: "step" },
  "DELETE /job/*": { "*": JOB },
  "DELETE /group/:gtype/:name": { gtype: "group", name: "webs" },
  "DELETE /host/:name": { name: HOST },

  "GET /consolelog/rule": { name: RULE, limit: 100 },
  "GET /consolelog/rule/follow": { name: RULE },
  "DELETE /consolelog/rule": { name: RULE },
  "DELETE /consolelog/rule/truncate": {},
  "GET /consolelog/serverjs": { name: "greet.js", limit: 100 },
  "GET /consolelog/serverjs/follow": { name: "greet.js" },
  "DELETE /consolelog/serverjs": { name: "greet.js" },
  "DELETE /consolelog/serverjs/truncate": {},
  "GET /consolelog/trigger": { name: "/matrix/visit#count", limit: 100 },
  "GET /consolelog/trigger/follow": { name: "/matrix/visit#count" },
  "DELETE /consolelog/trigger": { name: "/matrix/visit#count" },
  "DELETE /consolelog/trigger/truncate": {},
};
