--class=/matrix/backup/run
--parser=json
-- One row for each set of a backup, and the state of the host as an object that the next run writes again.

local UNITS = { B = 1, KiB = 1024, MiB = 1024 * 1024, GiB = 1024 * 1024 * 1024 }

local function bytes(text)
  local number, unit = tostring(text):match("^([%d%.]+)%s*(%a+)$")
  if number == nil or UNITS[unit] == nil then error("no size: " .. tostring(text), 0) end
  return math.floor(tonumber(number) * UNITS[unit])
end

local total, failed = 0, {}
for _, set in ipairs(OBJECT.sets or {}) do
  setClass("/matrix/backup/run")
  setvar("host", OBJECT.host)
  setvar("volume", set.volume)
  setvar("ok", set.ok)
  if set.ok then
    local size = bytes(set.size)
    setvar("bytes", size)
    total = total + size
  else
    failed[#failed + 1] = set.volume
  end
end

table.sort(failed)
setClass("/matrix/backup/state")
setvar("host", OBJECT.host)
setvar("total", total)
setvar("failed", table.concat(failed, ","))
