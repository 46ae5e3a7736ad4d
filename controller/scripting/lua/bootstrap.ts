import { LUA_ANSWERS_MAX_CHARACTERS, LUA_NAMES_KEPT_MAX, SCRIPT_VALUE_MAX_DEPTH } from "../../../common/limits.ts";
import { LUA_LIBRARIES } from "./libraries.ts";

/** Errors that no text can catch, found anywhere in the message. The second one is Lua's own. */
export const FINAL_ERRORS = { time: "the time is over", memory: "not enough memory" } as const;

/** Message for a table that has no JSON because it is nested too deeply. */
export const TOO_DEEP = `a table is nested more than ${SCRIPT_VALUE_MAX_DEPTH} deep, or holds itself`;

/**
 * Runs once in each Lua VM, before any text of a user. Returns the functions `compile` and `run`. Removes everything
 * that reaches out of the VM, and protects the rest from changes: a call sees the libraries through its own tables.
 */
export const BOOTSTRAP = String.raw`
local host, progress = __host, __progress

local type, tostring, tonumber, pairs, ipairs, next, select, error = type, tostring, tonumber, pairs, ipairs, next, select, error
local setmetatable, getmetatable, rawget, setfenv, loadstring, unpack = setmetatable, getmetatable, rawget, setfenv, loadstring, unpack
local rawpcall, rawresume = pcall, coroutine.resume
local find, sub, byte, char, format, gsub = string.find, string.sub, string.byte, string.char, string.format, string.gsub
local match, gmatch, rep, lower, concat = string.match, string.gmatch, string.rep, string.lower, table.concat
local floor, huge, collectgarbage = math.floor, math.huge, collectgarbage

local TIME, MEMORY = "${FINAL_ERRORS.time}", "${FINAL_ERRORS.memory}"

-- What ends a run must not be caught: only its first place in the text differs.
local function isFinal(message)
  return type(message) == "string"
    and (find(message, TIME, 1, true) or find(message, MEMORY, 1, true)) ~= nil
end
local function passed(ok, first, ...)
  if not ok and isFinal(first) then error(first, 0) end
  return ok, first, ...
end
local function pcall(f, ...) return passed(rawpcall(f, ...)) end
-- The handler runs after the text was left: during the error nothing looks at the clock.
local function handled(handler, ok, first, ...)
  if ok then return ok, first, ... end
  return false, handler(first)
end
local function xpcall(f, handler) return handled(handler, pcall(f)) end
local function resume(...) return passed(rawresume(...)) end

-- JSON ------------------------------------------------------------------------------------------------------------
local ESCAPES = { ['"'] = '\\"', ["\\"] = "\\\\", ["\b"] = "\\b", ["\f"] = "\\f", ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t" }
local DEPTH_MAX = ${SCRIPT_VALUE_MAX_DEPTH}

local function escaped(c) return ESCAPES[c] or format("\\u%04x", byte(c)) end
local function quoted(text)
  if not find(text, '[%c"\\]') then return '"' .. text .. '"' end
  return '"' .. gsub(text, '[%c"\\]', escaped) .. '"'
end

-- Each kind of character of several bytes, of which UTF-8 has no other.
local CHARACTERS = {
  "[\194-\223][\128-\191]", "\224[\160-\191][\128-\191]", "[\225-\236\238\239][\128-\191][\128-\191]", "\237[\128-\159][\128-\191]",
  "\240[\144-\191][\128-\191][\128-\191]", "[\241-\243][\128-\191][\128-\191][\128-\191]", "\244[\128-\143][\128-\191][\128-\191]",
}
-- The host would read other bytes as U+FFFD.
local function checked(text)
  if not find(text, "[\128-\255]") then return text end
  local rest = text
  for at = 1, #CHARACTERS do rest = gsub(rest, CHARACTERS[at], " ") end
  if find(rest, "[\128-\255]") then error("a text that is not UTF-8 cannot be handed over", 0) end
  return text
end

local function numberText(value)
  if value ~= value or value == huge or value == -huge then error("a number that is none has no JSON", 0) end
  if value == floor(value) and value > -1e15 and value < 1e15 then return format("%.0f", value) end
  local short = format("%.14g", value)
  return tonumber(short) == value and short or format("%.17g", value)
end

-- How many entries a list has; nothing for another table.
local function lengthOf(value)
  if value[1] == nil then return nil end
  local count = 0
  for _ in next, value do count = count + 1 end
  for at = 2, count do
    if value[at] == nil then return nil end
  end
  return count > 0 and count or nil
end

-- The same few names come again and again.
local members, membersLeft = {}, ${LUA_NAMES_KEPT_MAX}
local function memberOf(key)
  local name = type(key) == "number" and numberText(key) or key
  if type(name) ~= "string" then error("a key of a table is no text", 0) end
  local member = quoted(checked(name)) .. ":"
  if name == key and membersLeft > 0 and #name <= 64 then members[name], membersLeft = member, membersLeft - 1 end
  return member
end

-- Pieces of text are joined once: each puts its own behind the last, and answers which that is then.
local put
local function putList(parts, last, value, count, depth)
  parts[last + 1] = "["
  last = last + 1
  for at = 1, count do
    if at > 1 then
      last = last + 1
      parts[last] = ","
    end
    last = put(parts, last, value[at], depth + 1)
  end
  parts[last + 1] = "]"
  return last + 1
end
local function putTable(parts, last, value, depth)
  if depth > DEPTH_MAX then error("${TOO_DEEP}", 0) end
  local length = lengthOf(value)
  if length then return putList(parts, last, value, length, depth) end
  local before = "{"
  for key, entry in next, value do
    parts[last + 1], parts[last + 2] = before, members[key] or memberOf(key)
    last, before = put(parts, last + 2, entry, depth + 1), ","
  end
  if before == "{" then
    parts[last + 1] = "{}"
  else
    parts[last + 1] = "}"
  end
  return last + 1
end

function put(parts, last, value, depth)
  local kind = type(value)
  if kind == "string" then
    parts[last + 1] = quoted(checked(value))
  elseif kind == "number" then
    parts[last + 1] = numberText(value)
  elseif kind == "nil" then
    parts[last + 1] = "null"
  elseif kind == "boolean" then
    parts[last + 1] = value and "true" or "false"
  elseif kind == "table" then
    return putTable(parts, last, value, depth)
  else
    error("a " .. kind .. " has no JSON", 0)
  end
  return last + 1
end

local function encode(value, depth)
  local parts = {}
  return concat(parts, "", 1, put(parts, 0, value, depth or 1))
end

local UNESCAPES = { ['"'] = '"', ["\\"] = "\\", ["/"] = "/", b = "\b", f = "\f", n = "\n", r = "\r", t = "\t" }

local function utf8(code)
  if code < 0x80 then return char(code) end
  if code < 0x800 then return char(0xC0 + floor(code / 0x40), 0x80 + code % 0x40) end
  if code < 0x10000 then return char(0xE0 + floor(code / 0x1000), 0x80 + floor(code / 0x40) % 0x40, 0x80 + code % 0x40) end
  return char(0xF0 + floor(code / 0x40000), 0x80 + floor(code / 0x1000) % 0x40, 0x80 + floor(code / 0x40) % 0x40, 0x80 + code % 0x40)
end

local function fault(at) error("no JSON at character " .. at, 0) end

local function decodeString(text, at)
  local stop = find(text, '["\\]', at)
  if not stop then fault(at) end
  if byte(text, stop) == 34 then return sub(text, at, stop - 1), stop + 1 end
  local parts = {}
  while true do
    if not stop then fault(at) end
    parts[#parts + 1] = sub(text, at, stop - 1)
    if byte(text, stop) == 34 then return concat(parts), stop + 1 end
    local c = sub(text, stop + 1, stop + 1)
    if c == "u" then
      local code = tonumber(match(text, "^%x%x%x%x", stop + 2) or fault(stop), 16)
      at = stop + 6
      if code >= 0xD800 and code < 0xDC00 then
        local low = match(text, "^\\u([dD][c-fC-F]%x%x)", at)
        if low then
          code = 0x10000 + (code - 0xD800) * 0x400 + tonumber(low, 16) - 0xDC00
          at = at + 6
        end
      end
      parts[#parts + 1] = utf8(code)
    else
      parts[#parts + 1] = UNESCAPES[c] or fault(stop)
      at = stop + 2
    end
    stop = find(text, '["\\]', at)
  end
end

local decodeValue
local function skip(text, at) return find(text, "[^ \t\r\n]", at) or fault(at) end

local function decodeList(text, at, depth)
  local list, count = {}, 0
  at = skip(text, at)
  if byte(text, at) == 93 then return list, at + 1 end
  while true do
    count = count + 1
    list[count], at = decodeValue(text, at, depth)
    local c = byte(text, at)
    if c ~= 44 and c ~= 93 then
      at = skip(text, at)
      c = byte(text, at)
    end
    if c == 93 then return list, at + 1 end
    if c ~= 44 then fault(at) end
    at = skip(text, at + 1)
  end
end

local function decodeMember(object, text, at, depth)
  if byte(text, at) ~= 34 then fault(at) end
  local key
  key, at = decodeString(text, at + 1)
  at = skip(text, at)
  if byte(text, at) ~= 58 then fault(at) end
  object[key], at = decodeValue(text, skip(text, at + 1), depth)
  return at
end

local function decodeObject(text, at, depth)
  local object = {}
  at = skip(text, at)
  if byte(text, at) == 125 then return object, at + 1 end
  while true do
    -- Most members are plain texts: one look finds all of such a one.
    local _, stop, key, value = find(text, '^"([^"\\]*)":"([^"\\]*)"', at)
    if stop then
      object[key], at = value, stop + 1
    else
      at = decodeMember(object, text, at, depth)
    end
    local c = byte(text, at)
    if c ~= 44 and c ~= 125 then
      at = skip(text, at)
      c = byte(text, at)
    end
    if c == 125 then return object, at + 1 end
    if c ~= 44 then fault(at) end
    at = at + 1
    if byte(text, at) ~= 34 then at = skip(text, at) end
  end
end

function decodeValue(text, at, depth)
  if depth > DEPTH_MAX then error("the JSON is nested too deeply", 0) end
  local c = byte(text, at)
  if c == 34 then return decodeString(text, at + 1) end
  if c == 123 then return decodeObject(text, at + 1, depth + 1) end
  if c == 91 then return decodeList(text, at + 1, depth + 1) end
  if c == 116 and sub(text, at, at + 3) == "true" then return true, at + 4 end
  if c == 102 and sub(text, at, at + 4) == "false" then return false, at + 5 end
  if c == 110 and sub(text, at, at + 3) == "null" then return nil, at + 4 end
  local number = match(text, "^-?%d+%.?%d*[eE]?[+-]?%d*", at)
  local value = number and tonumber(number)
  if not value then fault(at) end
  return value, at + #number
end

local function decode(text)
  if type(text) ~= "string" then error("JSON is parsed from text, not from a " .. type(text), 0) end
  local value, at = decodeValue(text, skip(text, 1), 1)
  if find(text, "[^ \t\r\n]", at) then fault(at) end
  return value
end

-- What a text may call --------------------------------------------------------------------------------------------
local function called(name, ...)
  local arguments = {}
  for at = 1, select("#", ...) do arguments[at] = encode((select(at, ...))) end
  local answer = host(name, "[" .. concat(arguments, ",") .. "]", progress[1])
  local kind = byte(answer)
  if kind == 33 then error(sub(answer, 2), 3) end
  if kind == 61 then return decode(sub(answer, 2)) end
end

${LUA_LIBRARIES}
local json = { parse = decode, string = function(value) return encode(value) end }

string.dump, string.gfind = nil, nil
coroutine.resume = resume
getmetatable("").__metatable = false

local LIBRARIES = { string = string, table = table, math = math, coroutine = coroutine, strings = strings, json = json, time = time, csv = csv }
local FUNCTIONS = {
  assert = assert, error = error, getmetatable = getmetatable, ipairs = ipairs, next = next, pairs = pairs, pcall = pcall,
  rawequal = rawequal, rawget = rawget, rawset = rawset, select = select, setmetatable = setmetatable,
  tonumber = tonumber, tostring = tostring, type = type, unpack = unpack, xpcall = xpcall, _VERSION = _VERSION,
}

local function closed() error("the libraries cannot be changed", 2) end
local function closedOver(library) return setmetatable({}, { __index = library, __newindex = closed, __metatable = false }) end

-- The host's functions by object and name, the same for every run: a text sees them through tables of its own.
local hosted = {}
local function offer(objects)
  for name, functions in next, decode(objects) do
    local object = {}
    for _, member in ipairs(functions) do
      local whole = name .. "." .. member
      object[member] = function(...) return called(whole, ...) end
    end
    for member, own in next, LIBRARIES[name] or {} do object[member] = own end
    hosted[name] = object
  end
  if hosted.log then FUNCTIONS.print = hosted.log.info end
end

-- A text of ours that stands around each run: it sees the libraries as they are.
local framed = { functions = {}, libraries = {} }
local function around(source)
  local chunk, message = loadstring(source, "=frame")
  if not chunk then error(message, 0) end
  setfenv(chunk, setmetatable({}, { __index = function(_, name)
    local value = FUNCTIONS[name]
    if value ~= nil then return value end
    return hosted[name] or LIBRARIES[name]
  end }))
  framed = chunk()
end

local LAZY = { __index = function(globals, name)
  local value = framed.functions[name]
  if value == nil then value = FUNCTIONS[name] end
  if value == nil then
    local library = framed.libraries[name] or hosted[name] or LIBRARIES[name]
    if library == nil then return nil end
    value = closedOver(library)
  end
  globals[name] = value
  return value
end }

-- Most texts use little of what there is: it is made for each run when it is asked for.
local function environment(input)
  local globals = setmetatable({}, LAZY)
  local env = setmetatable(input, { __index = globals, __metatable = false })
  globals._G = env
  return env
end

local compiled = {}
local function compile(name, source)
  if byte(source) == 27 then return "lua:1: a text is no bytecode" end
  local chunk, message = loadstring(source, "=lua")
  compiled[name] = chunk
  return chunk ~= nil or message
end

local function shown(message)
  if type(message) ~= "table" then return tostring(message) end
  local told, as = rawpcall(encode, message)
  return told and as or "an error without a text"
end

local NOBODY = {}

local function all(chunk, globals, wanted)
  local env = environment(type(globals) == "table" and globals or decode(globals))
  setfenv(chunk, env)
  if framed.begin then framed.begin(env) end
  chunk()
  if framed.finish then framed.finish(env) end
  local values = {}
  for at = 1, #wanted do values[wanted[at]] = rawget(env, wanted[at]) end
  return encode(values, 0)
end

-- The wanted variables by name as JSON, O when that is too much, or E and the text of the error as JSON; and whether
-- that is an error which ends runs.
local function one(chunk, globals, wanted, most)
  local ok, results = rawpcall(all, chunk, globals, wanted)
  local message = not ok and shown(results)
  -- The text is left: what takes its time from here on is not its doing.
  progress[1] = 0
  if not ok then
    if not rawpcall(checked, message) then message = gsub(message, "[\128-\255]", "?") end
    return "E" .. quoted(message), isFinal(results)
  end
  return #results <= most and results or "O", false
end

-- The globals of a line: JSON of those of one run, or a text of Lua of ours that answers a list of tables.
local function given(line)
  if byte(line) == 123 then return { line } end
  local read, message = loadstring(line, "=input")
  if not read then error(message, 0) end
  return read()
end

-- Runs a text for each of the globals of all lines, one after the other, and answers as many lines; fewer where one was
-- ended, or where the answers grow large.
local function run(name, lines, wanted, most)
  local chunk, answers, count, size, from = compiled[name], {}, 0, 0, 1
  local names, answer, isEnded = decode(wanted), nil, false
  repeat
    local to = find(lines, "\n", from, true)
    local each = given(sub(lines, from, to and to - 1))
    for at = 1, #each do
      count = count + 1
      progress[1] = count
      answer, isEnded = one(chunk, each[at], names, most)
      answers[count], size = answer, size + #answer
      if isEnded or size > ${LUA_ANSWERS_MAX_CHARACTERS} then break end
    end
    from = to and to + 1
  until not to or isEnded or size > ${LUA_ANSWERS_MAX_CHARACTERS}
  setfenv(chunk, NOBODY)
  -- What was ended may have left no memory for the answers.
  if isEnded then collectgarbage() end
  return count == 1 and answer or concat(answers, "\n")
end

-- Nothing of this is left for a text to reach.
local globals = _G
for name in next, globals do globals[name] = nil end
return { compile, run, offer, around }
`;
