import { LUA_LAYOUT_MAX_CHARACTERS } from "../../../common/limits.ts";

/**
 * Lua text for the bootstrap: the libraries `strings`, `time` and `csv`, which make no host calls. They are Lua loops
 * or single passes over a text, so a run can be stopped inside them as anywhere. They keep nothing of a call except the
 * layout that was read last.
 */
export const LUA_LIBRARIES = String.raw`
local strings = {}
function strings.split(value, separator)
  local parts = {}
  if separator == nil or separator == "" then
    for c in gmatch(value, "[%z\1-\127\194-\244][\128-\191]*") do parts[#parts + 1] = c end
    return parts
  end
  local from = 1
  while true do
    local at, to = find(value, separator, from, true)
    parts[#parts + 1] = sub(value, from, (at or 0) - 1)
    if not at then return parts end
    from = to + 1
  end
end
function strings.replace(value, old, new, count)
  local parts, from, done = {}, 1, 0
  while old ~= "" and (count == nil or count < 0 or done < count) do
    local at, to = find(value, old, from, true)
    if not at then break end
    parts[#parts + 1] = sub(value, from, at - 1)
    parts[#parts + 1] = new
    from, done = to + 1, done + 1
  end
  parts[#parts + 1] = sub(value, from)
  return concat(parts)
end
function strings.trim(value, cutset)
  if cutset == nil then return (match(value, "^%s*(.-)%s*$")) end
  local set = {}
  for _, c in ipairs(strings.split(cutset)) do set[c] = true end
  local parts = strings.split(value)
  local from, to = 1, #parts
  while set[parts[from]] do from = from + 1 end
  while to >= from and set[parts[to]] do to = to - 1 end
  return concat(parts, "", from, to)
end
function strings.join(parts, separator) return concat(parts, separator or "") end
function strings.fields(value)
  local parts = {}
  for part in gmatch(value, "%S+") do parts[#parts + 1] = part end
  return parts
end

-- What stands in quotes from there, where two of them are one, and where it goes on; nothing where they do not end.
local function quotedPart(text, at)
  local parts, from, quote = {}, at + 1, byte(text, at)
  while true do
    local stop = find(text, char(quote), from, true)
    if not stop then return nil end
    if byte(text, stop + 1) ~= quote then
      parts[#parts + 1] = sub(text, from, stop - 1)
      return concat(parts), stop + 1
    end
    parts[#parts + 1], from = sub(text, from, stop), stop + 2
  end
end

-- Times, in milliseconds since 1970, UTC where no zone is named ----------------------------------------------------
local MONTHS = { "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" }
local WEEKDAYS = { "Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed" }
local DAY, TIME_MIN, TIME_MAX = 86400000, -62167219200000, 253402300799999
local MONTH_OF = {}
for at, name in ipairs(MONTHS) do MONTH_OF[lower(name)] = at end

-- The days from 1970 to a date, and back: "chrono-Compatible Low-Level Date Algorithms", H. Hinnant.
local function daysOf(year, month, day)
  if month <= 2 then year = year - 1 end
  local era = floor(year / 400)
  local ofEra = year - era * 400
  local ofYear = floor((153 * (month + (month > 2 and -3 or 9)) + 2) / 5) + day - 1
  return era * 146097 + ofEra * 365 + floor(ofEra / 4) - floor(ofEra / 100) + ofYear - 719468
end
local function dateOf(days)
  days = days + 719468
  local era = floor(days / 146097)
  local ofEra = days - era * 146097
  local year = floor((ofEra - floor(ofEra / 1460) + floor(ofEra / 36524) - floor(ofEra / 146096)) / 365)
  local ofYear = ofEra - (365 * year + floor(year / 4) - floor(year / 100))
  local shifted = floor((5 * ofYear + 2) / 153)
  local month = shifted + (shifted < 10 and 3 or -9)
  return year + era * 400 + (month <= 2 and 1 or 0), month, ofYear - floor((153 * shifted + 2) / 5) + 1
end

-- How each run of a letter is read, by the letter; what follows a letter is how often it stands at most.
local MOST = { y = 4, M = 3, d = 2, H = 2, h = 2, m = 2, s = 2, S = 9, a = 1, E = 3, Z = 1, X = 3 }
local function patternOf(letter, count)
  if letter == "M" and count == 3 or letter == "E" then return "^%a%a%a" end
  if letter == "a" then return "^[AaPp][Mm]" end
  if letter == "Z" or letter == "X" then return "^[Z+-]%d?%d?:?%d?%d?" end
  if letter == "y" and count ~= 2 then return "^%d%d%d%d" end
  if letter == "d" and count == 1 then return "^ ?%d%d?" end
  return count == 1 and letter ~= "S" and "^%d%d?" or "^" .. rep("%d", count)
end

-- A list of texts that stand as they are, and of {letter, count, pattern}; or nothing, and why.
local function partsOf(layout)
  local parts, at = {}, 1
  while at <= #layout do
    local letter = match(layout, "^%a", at)
    if letter then
      local to = at
      while sub(layout, to + 1, to + 1) == letter do to = to + 1 end
      local count = to - at + 1
      if count > (MOST[letter] or 0) then return nil, "a layout knows no " .. sub(layout, at, to) end
      parts[#parts + 1], at = { letter, count, patternOf(letter, count) }, to + 1
    elseif byte(layout, at) == 39 then
      local text, to = quotedPart(layout, at)
      if not text then return nil, "the layout has a ' without another" end
      parts[#parts + 1], at = text == "" and "'" or text, to
    else
      parts[#parts + 1], at = sub(layout, at, at), at + 1
    end
  end
  return parts
end

local lastLayout, lastParts
local function readLayout(layout)
  if layout == lastLayout then return lastParts end
  if type(layout) ~= "string" then return nil, "a layout is a text such as yyyy-MM-dd HH:mm:ss" end
  if #layout > ${LUA_LAYOUT_MAX_CHARACTERS} then return nil, "a layout has at most ${LUA_LAYOUT_MAX_CHARACTERS} characters" end
  local parts, why = partsOf(layout)
  if parts then lastLayout, lastParts = layout, parts end
  return parts, why
end

local function zoneMs(text)
  if text == "Z" then return 0 end
  local sign, hours, minutes = match(text, "^([+-])(%d%d):?(%d?%d?)$")
  if not sign or #minutes == 1 then return nil end
  hours, minutes = tonumber(hours), tonumber(minutes) or 0
  if hours > 18 or minutes > 59 then return nil end
  return (sign == "-" and -1 or 1) * (hours * 60 + minutes) * 60000
end

local function valueOf(part, text)
  local letter, count = part[1], part[2]
  if letter == "M" and count == 3 then return MONTH_OF[lower(text)] end
  if letter == "a" then return lower(text) == "pm" and 12 or 0 end
  if letter == "E" then return 0 end
  if letter == "Z" or letter == "X" then return zoneMs(text) end
  local number = tonumber(text)
  if letter == "y" and count == 2 then return number + (number < 69 and 2000 or 1900) end
  if letter == "S" then return floor(number * 10 ^ (3 - count)) end
  return number
end

-- The values of a text by their letters; nothing where it does not fit.
local function readValues(text, parts)
  local values, at = { H = 0, m = 0, s = 0, S = 0, Z = 0 }, 1
  for _, part in ipairs(parts) do
    local piece, value = part, true
    if type(part) == "table" then
      piece = match(text, part[3], at)
      value = piece and valueOf(part, piece)
      if value then values[part[1]] = value end
    elseif sub(text, at, at + #part - 1) ~= part then
      return nil
    end
    if not value then return nil end
    at = at + #piece
  end
  return at > #text and values or nil
end

local function timeOf(values)
  local year, month, day, hour = values.y or 1970, values.M or 1, values.d or 1, values.H
  local half = values.h
  if half then
    if half < 1 or half > 12 then return nil end
    hour = half % 12 + (values.a or 0)
  end
  if month < 1 or month > 12 or hour > 23 or values.m > 59 or values.s > 60 then return nil end
  local days = daysOf(year, month, day)
  local _, sameMonth, sameDay = dateOf(days)
  if sameMonth ~= month or sameDay ~= day then return nil end
  return days * DAY + ((hour * 60 + values.m) * 60 + values.s) * 1000 + values.S - (values.X or values.Z)
end

-- Leap years are at most eight years apart.
local function timeNear(values, near)
  if not values.M and not values.d then
    local ms = timeOf(values)
    return ms and ms + floor((near - ms) / DAY + 0.5) * DAY
  end
  local best, year = nil, dateOf(floor(near / DAY))
  for away = 0, 8 do
    for _, one in ipairs({ year - away, year + away }) do
      values.y = one
      local ms = timeOf(values)
      if ms and (not best or (ms - near) * (ms - near) < (best - near) * (best - near)) then best = ms end
    end
    if best and away > 0 then break end
  end
  return best
end

local time = {}
function time.parse(text, layout, near)
  if type(text) ~= "string" then error("time.parse reads a text, not a " .. type(text), 2) end
  local parts, why = readLayout(layout)
  if not parts then error("time.parse: " .. why, 2) end
  local values = readValues(text, parts)
  if near ~= nil and (type(near) ~= "number" or not (near >= TIME_MIN and near <= TIME_MAX)) then
    error("time.parse: near is a time in milliseconds since 1970", 2)
  end
  local ms = values and (near and not values.y and timeNear(values, near) or timeOf(values))
  if not ms then error("time.parse: " .. sub(text, 1, 40) .. " is no time of the layout " .. layout, 2) end
  return ms
end

local function shownPart(letter, count, at)
  if letter == "M" and count == 3 then return MONTHS[at.M] end
  if letter == "E" then return WEEKDAYS[at.days % 7 + 1] end
  if letter == "a" then return at.H < 12 and "AM" or "PM" end
  if letter == "Z" then return "+0000" end
  if letter == "X" then return "Z" end
  if letter == "h" then return format("%0" .. count .. "d", (at.H + 11) % 12 + 1) end
  if letter == "S" then return sub(format("%03d", at.S) .. "000000", 1, count) end
  if letter == "y" then return count == 2 and format("%02d", at.y % 100) or format("%04d", at.y) end
  return format("%0" .. count .. "d", at[letter])
end
function time.format(ms, layout)
  if type(ms) ~= "number" or not (ms >= TIME_MIN and ms <= TIME_MAX) then
    error("time.format shows milliseconds since 1970, of the years 0 to 9999", 2)
  end
  local parts, why = readLayout(layout)
  if not parts then error("time.format: " .. why, 2) end
  ms = floor(ms)
  local days, seconds = floor(ms / DAY), floor(ms % DAY / 1000)
  local at = { days = days, H = floor(seconds / 3600), m = floor(seconds / 60) % 60, s = seconds % 60, S = ms % 1000 }
  at.y, at.M, at.d = dateOf(days)
  local shown = {}
  for each, part in ipairs(parts) do shown[each] = type(part) == "table" and shownPart(part[1], part[2], at) or part end
  return concat(shown)
end

-- CSV as RFC 4180 has it --------------------------------------------------------------------------------------------
local function separatorOf(separator)
  if separator == nil then return "," end
  if type(separator) == "string" and find(separator, '^[^%w%z"\r\n\128-\255]$') then return separator end
end

-- Rows, or nothing and why. A line without anything is none.
local function csvRows(text, separator)
  local rows, row, count, at, size = {}, {}, 0, 1, #text
  local stops, ofSeparator = "[%" .. separator .. "\r\n]", byte(separator)
  while at <= size or count > 0 do
    local from = at
    if byte(text, at) == 34 then
      row[count + 1], at = quotedPart(text, at)
      if not at then return nil, "quotes that begin at character " .. from .. " do not end" end
    else
      at = find(text, stops, from) or size + 1
      row[count + 1] = sub(text, from, at - 1)
    end
    count = count + 1
    local c = byte(text, at)
    if c == ofSeparator then
      at = at + 1
    elseif c == nil or c == 10 or c == 13 then
      if count > 1 or at > from then rows[#rows + 1] = row end
      row, count = {}, 0
      at = at + (c == 13 and byte(text, at + 1) == 10 and 2 or 1)
    else
      return nil, "text stands behind quotes at character " .. at
    end
  end
  return rows
end

local csv = {}
function csv.parse(text, separator)
  if type(text) ~= "string" then error("csv.parse reads a text, not a " .. type(text), 2) end
  separator = separatorOf(separator)
  if not separator then error("csv.parse: a separator is one character such as ;", 2) end
  local rows, why = csvRows(text, separator)
  if not rows then error("csv.parse: " .. why, 2) end
  return rows
end

-- Nothing for what a field cannot be.
local function fieldText(value, special)
  local kind = type(value)
  if kind == "boolean" then return tostring(value) end
  if kind == "number" then return value == value and value ~= huge and value ~= -huge and numberText(value) or nil end
  if kind ~= "string" then return nil end
  if not find(value, special) then return value end
  return '"' .. gsub(value, '"', '""') .. '"'
end
local function rowText(row, separator)
  local fields, special = {}, '[%' .. separator .. '"\r\n]'
  for at = 1, #row do
    local text = fieldText(row[at], special)
    if not text then return nil end
    fields[at] = text
  end
  -- A line without anything would be none.
  return #fields == 1 and fields[1] == "" and '""' or concat(fields, separator)
end
function csv.string(rows, separator)
  separator = separatorOf(separator)
  if not separator then error("csv.string: a separator is one character such as ;", 2) end
  if type(rows) ~= "table" then error("csv.string takes a list of rows, or one row", 2) end
  local lines = {}
  for at, row in ipairs(type(rows[1]) == "table" and rows or { rows }) do
    lines[at] = type(row) == "table" and rowText(row, separator) or nil
    if not lines[at] then error("csv.string: row " .. at .. " has what is no text, number or boolean", 2) end
  end
  return concat(lines, "\n")
end
`;
