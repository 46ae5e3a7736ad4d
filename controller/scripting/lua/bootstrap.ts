import { LUA_ANSWERS_MAX_CHARACTERS } from "../../../common/limits.ts";
import { LUA_JSON } from "./json.ts";
import { LUA_LIBRARIES } from "./libraries.ts";

/** Errors that no text can catch, found anywhere in the message. The second one is Lua's own. */
export const FINAL_ERRORS = { time: "the time is over", memory: "not enough memory" } as const;

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
${LUA_JSON}

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
