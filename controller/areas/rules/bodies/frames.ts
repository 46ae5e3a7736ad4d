import type { RuleBody, RuleLanguage } from "../definitions/options.ts";

/**
 * Code around the bodies of rules, for `frame` of `controller/scripting`. It takes the record from `OBJECT` and
 * `RECORD`, and writes the result of the body into `RESULT`.
 */
const LUA = String.raw`
local type, next, tostring, tonumber, rawget, rawset, error = type, next, tostring, tonumber, rawget, rawset, error
local byte, sub, match, gsub, find = string.byte, string.sub, string.match, string.gsub, string.find
local ceil, floor, json, strings = math.ceil, math.floor, json, strings
local NAMES = { _raw = 1, _host = 2, _source = 3, _time = 4 }
local DIGITS = { year = 4, month = 6, day = 8, hour = 10, minute = 12, second = 14 }
local G, O, R, rows, row, class, forwards, dropped, again
local functions = {}

-- The row that takes a value. The class named last begins another row, unless the present one has nothing yet.
local function target()
  if class ~= nil then
    if row.class ~= nil or next(row.set) ~= nil then
      row = { set = {} }
      rows[#rows + 1] = row
    end
    row.class, class = class, nil
  end
  return row
end
-- Global variables that begin with _ stand for columns.
local function take()
  for name, value in next, G do
    if type(name) == "string" and byte(name) == 95 and name ~= "_IGNORE" then
      target().set[name] = value
      rawset(G, name, nil)
    end
  end
end
local function attribute(name)
  local place = NAMES[name]
  if place then return R[place] end
  return R[6][name]
end
function functions.setvar(name, value)
  if value ~= nil then target() end
  row.set[tostring(name)] = value
end
function functions.getvar(name)
  local set = row.set[name]
  if set == nil then set = rawget(G, "_" .. name) end
  if set == nil then set = row.set["_" .. name] end
  if set == nil then set = rawget(G, byte(name) == 95 and name or "") end
  if set == nil then set = O[name] end
  if set == nil then set = attribute(name) end
  return set
end
function functions.setClass(path)
  take()
  row.class = class or row.class
  class = tostring(path)
end
function functions.getattr(name)
  local value = attribute("_" .. name)
  if value == nil then value = R[6][name] end
  return value
end
function functions.hostname() return R[2] end
function functions.gettimekey(unit)
  local count = DIGITS[unit or "day"]
  if not count then error("gettimekey knows year, month, day, hour, minute and second", 2) end
  return sub(R[5], 1, count)
end
local function pass(rule, data)
  forwards[#forwards + 1] = { rule = tostring(rule), text = data == nil and R[1] or tostring(data) }
end
function functions.forward(rule, data) pass(rule, data) dropped = true end
function functions.cforward(rule, data) pass(rule, data) end
function functions.dforward(rule, data) pass(rule, json.string(data == nil and O or data)) end
function functions.retry(reason) again = reason == nil and "" or tostring(reason) end
functions.lookup, functions.getcache = record.lookup, record.getcache
functions.setcache, functions.ipinfo = record.setcache, record.ipinfo
functions.classcache, functions.dial = record.classcache, record.dial

local function number(text)
  local n = tonumber(text)
  return n and n == n and n - n == 0 and n or nil
end
local omnibus = {
  length = string.len, lower = string.lower, upper = string.upper, trim = strings.trim,
  ltrim = function(text) return (gsub(text, "^%s+", "")) end,
  rtrim = function(text) return match(text, "^.*%S") or "" end,
  substr = function(text, from, count)
    local to = count and from + count - 1 or #text
    return to < 1 and "" or sub(text, from < 1 and 1 or from, to)
  end,
  split = function(text, separator) return strings.split(text, separator) end,
  replace = function(text, old, new) return strings.replace(text, old, new) end,
  match = function(text, other) return text == other end,
  nmatch = function(text, begin) return sub(text, 1, #begin) == begin end,
  contains = function(text, part) return find(text, part, 1, true) ~= nil end,
  extract = function(text, pattern) return (match(text, pattern)) end,
  int = function(text) local n = number(text) return n and (n < 0 and ceil(n) or floor(n)) end,
  real = number,
}

local function begin(globals)
  G, O, R = globals, globals.OBJECT, globals.RECORD
  rawset(G, "RECORD", nil)
  row = { set = {} }
  rows, class, forwards, dropped, again = { row }, nil, {}, false, nil
end
local function finish()
  take()
  row.class = class or row.class
  local ignored = rawget(G, "_IGNORE")
  local left = dropped or (ignored ~= nil and ignored ~= false and ignored ~= 0) or nil
  rawset(G, "RESULT", { rows = rows, forwards = next(forwards) and forwards, again = again, dropped = left })
end
return { begin = begin, finish = finish, functions = functions, libraries = { omnibus = omnibus } }
`;

const JAVASCRIPT = String.raw`
(function (global) {
  var O, R, own = Object.prototype.hasOwnProperty;
  var row = { set: {} }, rows = [row], named, forwards = [], dropped = false, again;
  var NAMES = { _raw: 0, _host: 1, _source: 2, _time: 3 };
  var DIGITS = { year: 4, month: 6, day: 8, hour: 10, minute: 12, second: 14 };
  function of(object, name) { return own.call(object, name) ? object[name] : undefined; }
  function attribute(name) { return own.call(NAMES, name) ? R[NAMES[name]] : of(R[5], name); }
  // The row that takes a value. The class named last begins another row, unless the present one has nothing yet.
  function target() {
    if (named === undefined) return row;
    if (row["class"] !== undefined || Object.keys(row.set).length > 0) {
      row = { set: {} };
      rows.push(row);
    }
    row["class"] = named;
    named = undefined;
    return row;
  }
  function take() {
    Object.keys(global).forEach(function (name) {
      if (name.charAt(0) !== "_" || name === "_" || name === "_IGNORE" || global[name] === undefined) return;
      target().set[name] = global[name];
      global[name] = undefined;
    });
  }
  function pass(rule, data) { forwards.push({ rule: String(rule), text: data === undefined ? R[0] : String(data) }); }
  global.setvar = function (name, value) { (value === undefined ? row : target()).set[name] = value; };
  global.getvar = function (name) {
    var found = [of(row.set, name), of(global, "_" + name), of(row.set, "_" + name), name.charAt(0) === "_" ? of(global, name) : undefined,
      of(O, name), attribute(name)];
    for (var i = 0; i < found.length; i++) if (found[i] !== undefined) return found[i];
    return undefined;
  };
  global.setClass = function (path) {
    take();
    if (named !== undefined) row["class"] = named;
    named = String(path);
  };
  global.getattr = function (name) { return own.call(NAMES, "_" + name) ? attribute("_" + name) : of(R[5], name); };
  global.hostname = function () { return R[1]; };
  global.gettimekey = function (unit) {
    var count = of(DIGITS, unit === undefined ? "day" : unit);
    if (count === undefined) throw new Error("gettimekey knows year, month, day, hour, minute and second");
    return R[4].slice(0, count);
  };
  global.forward = function (rule, data) { pass(rule, data); dropped = true; };
  global.retry = function (reason) { again = reason === undefined || reason === null ? "" : String(reason); };
  global.cforward = pass;
  global.dforward = function (rule, data) { pass(rule, JSON.stringify(data === undefined ? O : data)); };
  ["lookup", "getcache", "setcache", "ipinfo", "classcache", "dial"].forEach(function (name) {
    global[name] = function () { return global.record[name].apply(undefined, arguments); };
  });
  function number(text) {
    var n = typeof text === "number" ? text : typeof text === "string" && text.trim() !== "" ? Number(text) : NaN;
    return isFinite(n) ? n : undefined;
  }
  global.omnibus = {
    length: function (text) { return text.length; },
    lower: function (text) { return text.toLowerCase(); },
    upper: function (text) { return text.toUpperCase(); },
    trim: function (text) { return text.trim(); },
    ltrim: function (text) { return text.trimStart(); },
    rtrim: function (text) { return text.trimEnd(); },
    substr: function (text, from, count) {
      var to = count === undefined ? text.length : from + count - 1;
      return to < 1 ? "" : text.slice(from < 1 ? 0 : from - 1, to);
    },
    split: function (text, separator) { return text.split(separator); },
    replace: function (text, old, now) { return old === "" ? text : text.split(old).join(now); },
    match: function (text, other) { return text === other; },
    nmatch: function (text, begin) { return text.startsWith(begin); },
    contains: function (text, part) { return text.includes(part); },
    extract: function (text, pattern) {
      var found = new RegExp(pattern).exec(text);
      return found === null ? undefined : found.length > 1 ? found[1] : found[0];
    },
    int: function (text) { var n = number(text); return n === undefined ? undefined : Math.trunc(n); },
    real: number
  };
  // A number is a text, as in Lua.
  ["length", "lower", "upper", "trim", "ltrim", "rtrim", "substr", "split", "replace", "nmatch", "contains"].forEach(function (name) {
    var made = global.omnibus[name];
    global.omnibus[name] = function (text, second, third) {
      return made(typeof text === "number" ? String(text) : text, second, third);
    };
  });
  return {
    begin: function () {
      O = global.OBJECT;
      R = global.RECORD;
      delete global.RECORD;
    },
    finish: function () {
      take();
      if (named !== undefined) row["class"] = named;
      var ignored = global._IGNORE;
      global.RESULT = { rows: rows, forwards: forwards, again: again, dropped: dropped || (ignored !== undefined && ignored !== false && ignored !== 0) };
    },
  };
})`;

/** The frame by the language of the body. */
export const RULE_FRAMES: Readonly<Record<RuleLanguage, string>> = { lua: LUA, javascript: JAVASCRIPT };

/** The body as a script that can be parsed but runs nothing, for a check of its syntax. */
export function checkedOnly({ language, script }: RuleBody): string {
  return language === "lua" ? `do return end ${script}` : `if (false) {${script}\n}`;
}
