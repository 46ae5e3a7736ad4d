--class=/matrix/jobtime/run
--parser=csv
--fields=job,began,ended,code
--fields_type=VAR,VAR,VAR,INT
-- Times of day become seconds; a run over midnight is one run; slow ones and failed ones are told apart.

local SLOW = { backup = 7200, sync = 60 }

local function seconds(text)
  local h, m, s = text:match("^(%d+):(%d+):?(%d*)$")
  if h == nil then error("no time: " .. text, 0) end
  return tonumber(h) * 3600 + tonumber(m) * 60 + (tonumber(s) or 0)
end

local began, ended = seconds(OBJECT.began), seconds(OBJECT.ended)
if ended < began then ended = ended + 24 * 3600 end

local took = ended - began
_job = OBJECT.job
_seconds = took
if OBJECT.code ~= 0 then
  _state = "failed " .. OBJECT.code
elseif took > (SLOW[OBJECT.job] or math.huge) then
  _state = "slow"
else
  _state = "ok"
end
_shown = string.format("%d:%02d:%02d", math.floor(took / 3600), math.floor(took / 60) % 60, took % 60)
