import type { ExampleCalls } from "./types.ts";

const VISITS = "/matrix/visit";
const RULE = "/matrix/rules/visit";
const MAIL = "/matrix/etc/mail";
const PORT = "/matrix/etc/port";
const SHIFT = { name: "shifts", id: "night" };
const PLACE = { domain: "places", tagpath: "europe/oslo" };
const TAGGED = { domain: "places", tag: ["europe/oslo"], id: ["hostinfo:web-1"] };

/** Classes, objects, rules, files, configuration and tags. */
export const DATA_CALLS: ExampleCalls = {
  "POST /mxobject/schema/class": {
    class: VISITS,
    fields: [
      { name: "page", type: "varchar", iskey: true },
      { name: "status", type: "int", isindex: true },
    ],
    autosearch: true,
  },
  "POST /mxobject/actiontoclass": { data: [{ class: VISITS, page: "/start", status: 200 }], ctype: "insert" },
  "GET /mxobject/schema/class": { class: VISITS },
  "GET /mxobject/schema/class/fields": { id: VISITS },
  "GET /mxobject/schema/class/list": { id: "/matrix" },
  "GET /mxobject/schema/class/tree": { id: "/matrix" },
  "GET /mxobject/system/schema/:table": { table: "class" },
  "POST /mxobject/system/schema/:table": { table: "class" },
  "GET /mxobject/mql": { mql: `select * from ${VISITS} where status = 200 limit 10`, meta: true },
  "POST /mxobject/mql": {},
  "GET /mxobject/search": { cond: `#${VISITS}: start` },
  "POST /mxobject/search": {},
  "GET /mxobject/export": { class: VISITS, filetype: "mql" },
  "POST /mxobject/import": { uploadfile: `insert into ${VISITS} page='/about', status=200;\n` },
  "POST /mxobject/importclass": { plan: true, uploadfile: "the bytes of a workbook" },

  "PUT /mxobject/rule": { key: RULE, value: `--class=${VISITS}\n--parser=csv\n--fields=page,status` },
  "GET /mxobject/rule": { class: VISITS },
  "POST /mxobject/rule/new": { class: VISITS, type: "csv", fields: ["page", "status"] },
  "POST /mxobject/rule/try": { key: RULE, lines: ["/start,200"] },
  "POST /agent": { rule: RULE },
  "POST /pattern/:name": { name: "VISITOR", pattern: "%{IP:client} %{WORD:page}", eg: "192.0.2.1 start" },
  "GET /pattern": {},
  "GET /pattern/:name": { name: "VISITOR" },
  "POST /monitoring/policy/extend/*": { "*": "matrix/rules/visit" },
  "GET /monitoring/policy/extend/*": { "*": "matrix/rules/visit" },
  "PUT /mxobject/trigger": { class: VISITS, name: "count", script: "local page = OBJECT.page" },
  "GET /mxobject/trigger": { class: VISITS },
  "GET /rule/funcs": {},
  "GET /api/rule/funcs": {},
  "GET /trigger/funcs": {},
  "GET /api/trigger/funcs": {},

  "PUT /fs/*": { "*": "script/greet.js", data: "OUTPUT = { greeting: 'Hello, ' + INPUT }" },
  "POST /fs/*": { "*": "reports", uploadfile: ["/start,200\n/about,404\n"] },
  "POST /fs": { uploadfile: "Back at eight.\n" },
  "GET /fs": { type: "dir" },
  "GET /fs/*": { "*": "script/greet.js" },
  "GET /static/*": { "*": "script/greet.js" },
  "POST /fs/copy": { srcpath: "/reports/day.csv", dstpath: "/archive" },
  "POST /fs/index": {},
  "POST /fs/index/*": { "*": "script" },
  "GET /fs/search": { query: "greeting" },
  "GET /fs/search/*": { "*": "script", query: "greeting" },
  "POST /fs/rename": { srcpath: "/archive/day.csv", dstpath: "/archive/monday.csv" },
  "POST /fs/move": { srcpath: "/archive/monday.csv", dstpath: "/script" },
  "POST /fs/export": { srcpath: ["/reports"] },
  "POST /fs/import": { uploadfile: "(the bytes of a zip archive)", depth: 1 },
  "GET /action/parsefile": { rule: RULE, filename: "/reports/day.csv" },
  "GET /script/exec/js": { filepath: "greet.js", input: "world" },
  "POST /script/exec/js": {},

  "POST /config/set": { key: MAIL, value: "smtp.example.com" },
  "GET /config/get": { key: MAIL },
  "GET /config/list": { key: "/matrix/etc" },
  "GET /config/history": { key: MAIL },
  "GET /config/diff": { key: MAIL, from: 0, to: 1 },
  "GET /config/export": { key: "/matrix/etc" },
  "POST /config/import": {
    key: "/matrix/etc",
    uploadfile: '[{"key": "/matrix/etc/relay", "value": "relay.example.com"}]',
  },
  "POST /config/schema": { key: PORT, type: "integer", minimum: 1, maximum: 65_535 },
  "GET /config/schema": { key: PORT },
  "DELETE /config/schema": { key: PORT },
  "POST /config/rollback": { key: MAIL, version: 1 },
  "POST /config/del": { key: MAIL },

  "POST /appcontext/:key": { key: "colour", ttl: 3_600 },
  "GET /appcontext/:key": { key: "colour" },
  "DELETE /appcontext/:key": { key: "colour" },
  "POST /appcontext/collection/:name": { name: "shifts" },
  "POST /appcontext/collection/:name/:id": SHIFT,
  "PUT /appcontext/collection/:name/:id": SHIFT,
  "GET /appcontext/collection/:name": { name: "shifts", where: "open == true" },
  "GET /appcontext/collection/:name/:id": SHIFT,
  "DELETE /appcontext/collection/:name/:id": SHIFT,
  "DELETE /appcontext/collection/:name": { name: "shifts" },

  "POST /extend/:name": { name: "sites", items: [{ key: "north", city: "Oslo" }] },
  "PUT /extend/:name": { name: "sites", items: [{ key: "south", city: "Rome" }] },
  "GET /extend": {},
  "GET /extend/:name": { name: "sites" },
  "DELETE /extend/:name": { name: "sites" },

  "POST /tagdir/:domain": PLACE,
  "GET /tagdir/:domain": { domain: "places" },
  "PUT /:domain/addtags": TAGGED,
  "GET /tagdir/:domain/nodata": PLACE,
  "PUT /tagdir/:domain/deletetags": TAGGED,
  "DELETE /:domain/deletetags": TAGGED,
  "PUT /tagdir/:domain/rename": { ...PLACE, topath: "europe/bergen" },
  "PUT /tagdir/:domain": { domain: "places", tagpath: "europe/bergen", topath: "europe/oslo" },
  "DELETE /tagdir/:domain": PLACE,
};
