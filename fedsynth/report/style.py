"""The page's style sheet: one palette for light, one for dark; paper is always light. Kept in code so that the page
needs no file and no network."""

from __future__ import annotations

LIGHT = """
  --page: #f4f6f8; --card: #ffffff; --ink: #1b2430; --quiet: #586474; --line: #d9dfe6; --track: #e7ebf0;
  --real: #3a6cb4; --synthetic: #d9742b; --good: #1b7a4b; --fair: #8f5d00; --poor: #b3261e;
"""
DARK = """
  --page: #11151b; --card: #1a2029; --ink: #e5eaf1; --quiet: #9ba7b6; --line: #2d3642; --track: #2a323d;
  --real: #83aceb; --synthetic: #f0a063; --good: #5fce95; --fair: #e5b04a; --poor: #ff8a80;
"""

STYLE = f"""
:root {{ color-scheme: light dark; {LIGHT} }}
@media (prefers-color-scheme: dark) {{ :root {{ {DARK} }} }}
* {{ box-sizing: border-box; }}
body {{ margin: 0; background: var(--page); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }}
main {{ max-width: 1680px; margin: 0 auto; padding: 24px 16px 64px; }}
h1 {{ font-size: 1.9rem; line-height: 1.2; margin: 0 0 4px; }}
h2 {{ font-size: 1.35rem; margin: 44px 0 6px; }}
h3 {{ font-size: 1.02rem; margin: 0; overflow-wrap: anywhere; }}
p {{ margin: 6px 0 12px; max-width: 110ch; overflow-wrap: anywhere; }}
ul {{ margin: 0; padding-left: 1.1em; }}
.quiet {{ color: var(--quiet); fill: var(--quiet); }}
.small {{ font-size: 0.86rem; }}
nav {{ display: flex; flex-wrap: wrap; gap: 4px 16px; margin: 14px 0; font-size: 0.92rem; }}
a {{ color: var(--real); }}
.notice {{ border-left: 4px solid var(--fair); background: var(--card); padding: 10px 14px; margin: 14px 0; }}
.notice p {{ margin: 0; }}
.alarm {{ border: 2px solid var(--poor); border-left-width: 8px; color: var(--poor); font-weight: 650; }}
.grid {{ display: grid; gap: 14px; grid-template-columns: repeat(auto-fit, minmax(min(100%, 320px), 1fr)); }}
.maps {{ grid-template-columns: repeat(auto-fit, minmax(min(100%, max(320px, var(--map))), 1fr)); }}
.card {{ background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 14px 16px; min-width: 0;
  break-inside: avoid; }}
.card p {{ margin: 6px 0 0; }}
.card svg {{ margin-top: 10px; }}
.big {{ font-size: 1.75rem; font-weight: 650; line-height: 1.2; margin: 4px 0; }}
.head {{ display: flex; flex-wrap: wrap; justify-content: space-between; align-items: baseline; gap: 2px 10px; }}
.chip {{ font-size: 0.8rem; font-weight: 600; white-space: nowrap; }}
.good {{ color: var(--good); }} .fair {{ color: var(--fair); }} .poor {{ color: var(--poor); }}
.unknown {{ color: var(--quiet); }}
.legend {{ display: flex; flex-wrap: wrap; gap: 4px 18px; font-size: 0.9rem; margin: 6px 0 12px; color: var(--quiet); }}
.legend svg {{ width: 15px; height: 12px; margin-right: 6px; }}
svg {{ display: block; width: 100%; height: auto; font-size: 12px; }}
.legend svg {{ display: inline-block; }}
svg text {{ fill: var(--ink); }}
svg text.quiet {{ fill: var(--quiet); }}
.real {{ fill: var(--real); }} .synthetic {{ fill: var(--synthetic); }} .other {{ fill: var(--quiet); }}
.area {{ fill-opacity: 0.38; stroke: var(--real); stroke-width: 1; }}
.outline {{ fill: none; stroke: var(--synthetic); stroke-width: 2; }}
.mark {{ stroke: var(--real); stroke-width: 3; }}
.whisker {{ stroke-width: 3; stroke-linecap: round; stroke-opacity: 0.55; }}
.path {{ fill: none; stroke-linejoin: round; }}
.real.whisker {{ stroke: var(--real); }} .synthetic.whisker {{ stroke: var(--synthetic); }}
.other.whisker {{ stroke: var(--quiet); }}
.track {{ fill: var(--track); }}
.axis {{ stroke: var(--quiet); stroke-width: 1; }}
line.grid {{ stroke: var(--line); stroke-width: 1; }}
.chance {{ stroke: var(--quiet); stroke-width: 1; stroke-dasharray: 3 3; }}
.plus {{ fill: var(--real); }} .minus {{ fill: var(--synthetic); }}
.frame {{ fill: none; stroke: var(--line); }}
.scroll {{ overflow-x: auto; }}
table {{ border-collapse: collapse; width: 100%; font-size: 0.9rem; }}
th, td {{ text-align: left; vertical-align: top; padding: 6px 10px 6px 0; border-bottom: 1px solid var(--line); }}
th[scope=row] {{ font-weight: 550; }}
thead th {{ color: var(--quiet); font-weight: 600; white-space: nowrap; }}
.facts th[scope=row] {{ white-space: nowrap; }}
.facts td {{ overflow-wrap: anywhere; }}
.numbers td {{ white-space: nowrap; font-variant-numeric: tabular-nums; }}
code {{ font: 0.85em ui-monospace, monospace; overflow-wrap: anywhere; }}
.card table {{ margin-top: 8px; font-size: 0.84rem; }}
.card th, .card td {{ padding: 3px 8px 3px 0; }}
@media (max-width: 560px) {{
  .figures thead {{ display: none; }}
  .figures tr {{ display: block; border-bottom: 1px solid var(--line); padding: 8px 0; }}
  .figures th, .figures td {{ display: block; border: 0; padding: 0; }}
  .figures td:not(:last-child)::before {{ content: attr(data-label) ": "; color: var(--quiet); }}
}}
@page {{ size: A4; margin: 14mm; }}
@media print {{
  :root {{ color-scheme: light; {LIGHT} --page: #ffffff; }}
  * {{ print-color-adjust: exact; -webkit-print-color-adjust: exact; }}
  body {{ font-size: 10.5pt; }}
  main {{ max-width: none; padding: 0; }}
  nav {{ display: none; }}
  h2 {{ margin-top: 26px; }}
  h2, section > p, .legend, .notice {{ break-after: avoid; break-inside: avoid; }}
  section > .grid ~ p {{ break-after: auto; }}
  table {{ font-size: 9pt; }}
  tr {{ break-inside: avoid; }}
  .grid {{ grid-template-columns: repeat(2, 1fr); }}
  .maps {{ grid-template-columns: repeat(auto-fit, minmax(min(100%, calc(0.9 * var(--map))), 1fr)); }}
  .scroll {{ overflow: visible; }}
  svg.heat {{ min-width: 0 !important; }}
}}
"""
