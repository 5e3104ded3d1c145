"""The style of a report; it names nothing outside of the page."""

from __future__ import annotations

from typing import Final

STYLE: Final = """
:root{--bg:#f6f7fa;--card:#fff;--text:#1b2333;--soft:#56627a;--rim:#dde2ec;
--ok:#2e8b57;--bad:#c0362c;--wait:#a8740a;--go:#2f6fd0;--bar:#b7c6e6;
--okbg:#dff3e4;--badbg:#fbe1de;--waitbg:#fdf0cf;--gobg:#deebfd}
@media (prefers-color-scheme:dark){:root{--bg:#0f1218;--card:#161a22;--text:#e9edf6;
--soft:#aab4c8;--rim:#2b3446;--ok:#5cc489;--bad:#f0837a;--wait:#e5b84e;--go:#7db0f5;
--bar:#3d527f;--okbg:#1d3a29;--badbg:#482322;--waitbg:#443717;--gobg:#1d3355}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--text);
font:15px/1.5 system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif}
main{max-width:1040px;margin:0 auto;padding:28px 20px 60px}
h1{font-size:24px;margin:0}h2{font-size:17px;margin:30px 0 10px}
p{margin:4px 0}.soft{color:var(--soft)}small{color:var(--soft)}
.facts{display:flex;flex-wrap:wrap;gap:10px;margin:16px 0}
.facts div{background:var(--card);border:1px solid var(--rim);border-radius:8px;
padding:8px 14px}.facts b{display:block;font-size:18px}
.picture{overflow:auto;text-align:center}
.note{border-left:4px solid;border-radius:6px;padding:8px 14px;margin:8px 0;
overflow-wrap:anywhere}
.failed{border-color:var(--bad);background:var(--badbg)}
.waiting{border-color:var(--wait);background:var(--waitbg)}
details.step{background:var(--card);border:1px solid var(--rim);border-radius:8px;
margin:6px 0}
details.step>summary{display:flex;gap:10px;align-items:center;padding:7px 12px;
cursor:pointer;list-style:none}
summary::-webkit-details-marker{display:none}
details.step>div{padding:2px 14px 12px;border-top:1px solid var(--rim)}
.no{min-width:34px;text-align:right;font-variant-numeric:tabular-nums}
.who{flex:1;min-width:0;display:flex;flex-wrap:wrap;gap:6px}
.chip{border-radius:10px;padding:0 9px;background:var(--okbg);max-width:100%;
overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
.chip.failed{background:var(--badbg)}.chip.waiting{background:var(--waitbg)}
.chip.next{background:var(--gobg)}.chip.plain{background:var(--rim)}
.time{width:170px;flex:none;font-size:13px;color:var(--soft);text-align:right;
font-variant-numeric:tabular-nums}
.bar{display:block;height:4px;border-radius:2px;background:var(--bar);
margin:2px 0 0 auto}
pre{margin:6px 0;padding:8px 12px;background:var(--bg);border-radius:6px;
overflow:auto;max-height:460px;font:12.5px/1.45 ui-monospace,Menlo,Consolas,monospace;
white-space:pre-wrap;overflow-wrap:anywhere}
.plus{color:var(--ok)}.minus{color:var(--bad)}
.key{font-weight:600}.inner{margin:8px 0 4px;padding-left:12px;
border-left:3px solid var(--rim)}
details.more>summary{cursor:pointer;color:var(--go);font-size:13px}
h3{font-size:14px;margin:10px 0 2px}code{overflow-wrap:anywhere}
@media (max-width:640px){.time{width:84px}}
@media print{details.step>summary{break-after:avoid}body{background:#fff}}
"""
