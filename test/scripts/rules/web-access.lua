--class=/matrix/weblog/hit
--parser=grok
--pattern_1=%{IP:client} - %{NOTSPACE:who} \[%{HTTPDATE:when}\] "%{WORD:method} %{NOTSPACE:path}[^"]*" %{INT:status:int} %{INT:bytes:int}
-- Requests without their parameters; errors are rows of another class, too; checks of the balancer are left out.

local function area(path)
  local first = path:match("^/([^/]+)")
  if first == nil then return "home" end
  if first == "static" or path:match("%.css$") or path:match("%.js$") then return "assets" end
  return first
end

local path = OBJECT.path:gsub("%?.*$", "")
if path == "/health" then
  _IGNORE = true
  return
end

local kind = area(path)
_path = path
_area = kind
_client = OBJECT.client
_status = OBJECT.status
_bytes = OBJECT.bytes
if OBJECT.who ~= "-" then _user = OBJECT.who end

if OBJECT.status >= 500 then
  setClass("/matrix/weblog/failure")
  setvar("path", path)
  setvar("reason", OBJECT.status == 503 and "overloaded" or "failed")
end
