--class=/matrix/sensor/reading
--parser=csv
--fields=sensor,unit,value
--fields_type=VAR,VAR,VAR
-- Readings in whatever unit become degrees; what is out of range is kept apart with the reason.

local RANGES = { attic = { -40, 80 }, rack = { 0, 60 } }

local CONVERT = {
  C = function(value) return value end,
  F = function(value) return (value - 32) * 5 / 9 end,
  K = function(value) return value - 273.15 end,
}

local function reject(reason)
  setClass("/matrix/sensor/rejected")
  setvar("line", getvar("_raw"))
  setvar("reason", reason)
end

local convert = CONVERT[OBJECT.unit]
local value = tonumber(OBJECT.value)
if convert == nil then
  reject("unit " .. tostring(OBJECT.unit))
elseif value == nil then
  reject("no number")
else
  local degrees = math.floor(convert(value) * 10 + 0.5) / 10
  local range = RANGES[OBJECT.sensor:match("^%a+")] or { -273.1, 1000 }
  if degrees < range[1] or degrees > range[2] then
    reject("out of range: " .. degrees)
  else
    _sensor = OBJECT.sensor
    _degrees = degrees
    _state = degrees > range[2] * 0.9 and "hot" or "fine"
  end
end
