--class=/matrix/firewall/verdict
--parser=text
--fields=line
-- key=value pairs, with quotes; only what was refused is kept, with the service by its port.

local SERVICES = { ["22"] = "ssh", ["53"] = "dns", ["443"] = "https" }

local function pairs_of(line)
  local found = {}
  for key, value in line:gmatch('([%w_]+)=(%b"")') do found[key] = value:sub(2, -2) end
  for key, value in line:gmatch('([%w_]+)=([^%s"]+)') do
    if found[key] == nil then found[key] = value end
  end
  return found
end

local function inside(address)
  return address:match("^10%.") ~= nil or address:match("^192%.168%.") ~= nil
end

local found = pairs_of(getvar("_raw"))
if found.action ~= "drop" then
  _IGNORE = true
else
  if found.src == nil then error("no src", 0) end
  setvar("line", nil)
  _source = found.src
  _service = SERVICES[found.dport] or found.dport
  _rule = found.rule
  _direction = inside(found.src) and "out" or "in"
end
