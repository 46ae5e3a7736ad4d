import { LUA_NAMES_KEPT_MAX, SCRIPT_VALUE_MAX_DEPTH } from "../../../common/limits.ts";

/** Message for a table that has no JSON because it is nested too deeply. */
export const TOO_DEEP = `a table is nested more than ${SCRIPT_VALUE_MAX_DEPTH} deep, or holds itself`;

/**
 * Lua text for the bootstrap: `encode` makes JSON from a Lua value, and `decode` reads JSON. A table whose keys are the
 * numbers from 1 on becomes a list; any other table, also an empty one, becomes an object. Both throw a Lua error with a
 * text, for a value that has no JSON and for a text that is none.
 */
export const LUA_JSON = String.raw`local ESCAPES = { ['"'] = '\\"', ["\\"] = "\\\\", ["\b"] = "\\b", ["\f"] = "\\f", ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t" }
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
end`;
