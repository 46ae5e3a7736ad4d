import type { RuleBody, RuleLanguage } from "./options.ts";

/** What stands before and behind the body of a rule, which runs once for each record. */
interface Frame {
  readonly begin: string;
  readonly end: string;
}

const LUA = String.raw`
local finish
do
  local G, O, R, J = _G, OBJECT, RECORD, json
  local rows, row, forwards, dropped = {}, { set = {} }, {}, false
  rows[1] = row
  RECORD = nil
  local function take()
    for name, value in next, G do
      if type(name) == "string" and name:byte() == 95 and name ~= "_IGNORE" then
        row.set[name] = value
        rawset(G, name, nil)
      end
    end
  end
  function setvar(name, value) row.set[tostring(name)] = value end
  function getvar(name)
    local set = row.set[name]
    if set == nil then set = rawget(G, "_" .. name) end
    if set == nil then set = row.set["_" .. name] end
    if set == nil then set = rawget(G, name:byte() == 95 and name or "") end
    if set == nil then set = O[name] end
    if set == nil then set = R[name] end
    if set == nil then set = R.groups[name] end
    return set
  end
  function setClass(path)
    take()
    if row.class ~= nil or next(row.set) ~= nil then
      row = { set = {} }
      rows[#rows + 1] = row
    end
    row.class = tostring(path)
  end
  function getattr(name)
    local value = R["_" .. name]
    if value == nil then value = R.groups[name] end
    return value
  end
  function hostname() return R._host end
  local DIGITS = { year = 4, month = 6, day = 8, hour = 10, minute = 12, second = 14 }
  function gettimekey(unit)
    local count = DIGITS[unit or "day"]
    if not count then error("gettimekey knows year, month, day, hour, minute and second", 2) end
    return R.digits:sub(1, count)
  end
  local function pass(rule, data) forwards[#forwards + 1] = { rule = tostring(rule), text = data == nil and R._raw or tostring(data) } end
  function forward(rule, data) pass(rule, data) dropped = true end
  function cforward(rule, data) pass(rule, data) end
  function dforward(rule, data) pass(rule, J.string(data == nil and O or data)) end
  function lookup(...) return record.lookup(...) end
  function getcache(...) return record.getcache(...) end
  function setcache(...) return record.setcache(...) end
  function ipinfo(...) return record.ipinfo(...) end
  omnibus = setmetatable({}, { __metatable = false, __index = function(own, asked)
    local made = {
      length = function(text) return #text end,
      lower = string.lower, upper = string.upper,
      trim = function(text) return (text:match("^%s*(.-)%s*$")) end,
      ltrim = function(text) return (text:gsub("^%s+", "")) end,
      rtrim = function(text) return text:match("^(.-)%s*$") end,
      substr = function(text, from, count) return text:sub(from, from + (count or #text) - 1) end,
      split = strings.split, replace = strings.replace,
      match = function(text, other) return text == other end,
      nmatch = function(text, begin) return text:sub(1, #begin) == begin end,
      contains = function(text, part) return text:find(part, 1, true) ~= nil end,
      extract = function(text, pattern) return (text:match(pattern)) end,
      int = function(text) local n = tonumber(text) return n and (n < 0 and math.ceil(n) or math.floor(n)) end,
      real = function(text) return tonumber(text) end,
    }
    for name, f in next, made do rawset(own, name, f) end
    return made[asked]
  end })
  finish = function()
    take()
    local ignored = rawget(G, "_IGNORE")
    return { rows = rows, forwards = forwards, dropped = dropped or (ignored ~= nil and ignored ~= false and ignored ~= 0)  }
  end
end;
(function()`;

const LUA_END = "\nend)() RESULT = finish()";

const JAVASCRIPT = String.raw`
var endOfRecord = (function (global) {
  var O = global.OBJECT, R = global.RECORD, own = Object.prototype.hasOwnProperty;
  var row = { set: {} }, rows = [row], forwards = [], dropped = false;
  var DIGITS = { year: 4, month: 6, day: 8, hour: 10, minute: 12, second: 14 };
  delete global.RECORD;
  function of(object, name) { return own.call(object, name) ? object[name] : undefined; }
  function take() {
    Object.keys(global).forEach(function (name) {
      if (name.charAt(0) !== "_" || name === "_" || name === "_IGNORE" || global[name] === undefined) return;
      row.set[name] = global[name];
      global[name] = undefined;
    });
  }
  function pass(rule, data) { forwards.push({ rule: String(rule), text: data === undefined ? R._raw : String(data) }); }
  global.setvar = function (name, value) { row.set[name] = value; };
  global.getvar = function (name) {
    var found = [of(row.set, name), of(global, "_" + name), of(row.set, "_" + name), name.charAt(0) === "_" ? of(global, name) : undefined,
      of(O, name), of(R, name), of(R.groups, name)];
    for (var i = 0; i < found.length; i++) if (found[i] !== undefined) return found[i];
    return undefined;
  };
  global.setClass = function (path) {
    take();
    if (row["class"] !== undefined || Object.keys(row.set).length > 0) {
      row = { set: {} };
      rows.push(row);
    }
    row["class"] = String(path);
  };
  global.getattr = function (name) { return own.call(R, "_" + name) ? R["_" + name] : of(R.groups, name); };
  global.hostname = function () { return R._host; };
  global.gettimekey = function (unit) {
    var count = of(DIGITS, unit === undefined ? "day" : unit);
    if (count === undefined) throw new Error("gettimekey knows year, month, day, hour, minute and second");
    return R.digits.slice(0, count);
  };
  global.forward = function (rule, data) { pass(rule, data); dropped = true; };
  global.cforward = pass;
  global.dforward = function (rule, data) { pass(rule, JSON.stringify(data === undefined ? O : data)); };
  ["lookup", "getcache", "setcache", "ipinfo"].forEach(function (name) {
    global[name] = function () { return global.record[name].apply(undefined, arguments); };
  });
  global.omnibus = {
    length: function (text) { return text.length; },
    lower: function (text) { return text.toLowerCase(); },
    upper: function (text) { return text.toUpperCase(); },
    trim: function (text) { return text.trim(); },
    ltrim: function (text) { return text.trimStart(); },
    rtrim: function (text) { return text.trimEnd(); },
    substr: function (text, from, count) { return text.slice(from - 1, count === undefined ? undefined : from - 1 + count); },
    split: function (text, separator) { return text.split(separator); },
    replace: function (text, old, now) { return text.split(old).join(now); },
    match: function (text, other) { return text === other; },
    nmatch: function (text, begin) { return text.startsWith(begin); },
    contains: function (text, part) { return text.includes(part); },
    extract: function (text, pattern) {
      var found = new RegExp(pattern).exec(text);
      return found === null ? undefined : found.length > 1 ? found[1] : found[0];
    },
    int: function (text) { var n = Number(text); return isNaN(n) ? undefined : Math.trunc(n); },
    real: function (text) { var n = Number(text); return isNaN(n) ? undefined : n; }
  };
  return function () {
    take();
    return { rows: rows, forwards: forwards, dropped: dropped || (global._IGNORE !== undefined && global._IGNORE !== false && global._IGNORE !== 0) };
  };
})(this);`;

const JAVASCRIPT_END = "\n;var RESULT = endOfRecord();";

const FRAMES: Readonly<Record<RuleLanguage, Frame>> = {
  lua: { begin: onOneLine(LUA), end: LUA_END },
  javascript: { begin: onOneLine(JAVASCRIPT), end: JAVASCRIPT_END },
};

/** The text that is run: it finds the record in `OBJECT` and `RECORD`, and leaves in `RESULT` what it made of it. */
export function framed({ language, script }: RuleBody): string {
  const { begin, end } = FRAMES[language];
  return begin + script + end;
}

/** The same, of which nothing runs. */
export function checkedOnly({ language, script }: RuleBody): string {
  const { begin, end } = FRAMES[language];
  return language === "lua" ? `do return end ${begin}${script}${end}` : `if (false) {${begin}${script}${end}\n}`;
}

/** So that the lines of the body keep their numbers. */
function onOneLine(text: string): string {
  return text
    .split("\n")
    .map((line) => line.trim())
    .join(" ");
}
