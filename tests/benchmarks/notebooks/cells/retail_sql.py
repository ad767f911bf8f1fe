"""SQL-heavy retail analysis: views upon views."""

CELLS = [
    # 0
    """
spark.read.parquet("data/retail/sales").createOrReplaceTempView("sales")
spark.read.csv("data/retail/stores.csv", header=True, inferSchema=True).createOrReplaceTempView("stores")
spark.read.csv("data/retail/items.csv", header=True, inferSchema=True).createOrReplaceTempView("items")
spark.read.csv("data/retail/calendar.csv", header=True, inferSchema=True).createOrReplaceTempView("calendar")
spark.read.json("data/retail/returns.json").createOrReplaceTempView("returns")
spark.sql("show tables").show()
""",
    # 1
    """
spark.sql("select count(*) as n, min(sale_date), max(sale_date), sum(amount) from sales").show()
""",
    # 2
    """
spark.sql("describe sales").show(truncate=False)
""",
    # 3
    '''
spark.sql("""
    create or replace temp view sales_full as
    select s.sale_id, s.sale_date, c.year, c.quarter, c.month, c.dow, c.is_holiday,
           st.store_id, st.store_name, st.region, st.city, st.sqm,
           i.item_id, i.item, i.category, i.brand,
           s.qty, s.amount, cast(s.qty * i.unit_cost as decimal(12,2)) as cost, s.member_id
    from sales s
    join stores st on s.store_id = st.store_id
    join items i on s.item_id = i.item_id
    join calendar c on s.sale_date = c.d
""")
spark.table("sales_full").count()
''',
    # 4
    """
spark.sql("select * from sales_full limit 5").toPandas()
""",
    # 5
    '''
spark.sql("""
    select region, count(*) n, sum(amount) revenue, round(avg(amount), 3) avg_amount
    from sales_full group by region order by revenue desc
""").show()
''',
    # 6
    '''
monthly = spark.sql("""
    with m as (
        select year, month, sum(amount) as revenue, sum(amount - cost) as margin
        from sales_full group by year, month
    )
    select year, month, revenue, margin,
           lag(revenue, 12) over (order by year, month) as revenue_py,
           round(revenue / lag(revenue, 12) over (order by year, month) - 1, 4) as growth
    from m order by year, month
""")
monthly.createOrReplaceTempView("monthly")
monthly.toPandas()
''',
    # 7
    """
spark.sql("select year, max(revenue) best, min(revenue) worst from monthly group by year order by year").show()
""",
    # 8
    '''
spark.sql("""
    select coalesce(region, 'ALL') region, coalesce(category, 'ALL') category, sum(amount) revenue
    from sales_full
    group by rollup(region, category)
    order by region, category
""").show(50)
''',
    # 9
    '''
spark.sql("""
    select year, quarter, grouping_id() g, count(distinct member_id) members, sum(qty) units
    from sales_full where member_id is not null
    group by cube(year, quarter) order by g, year, quarter
""").show(20)
''',
    # 10
    '''
spark.sql("""
    select * from (select category, year, quarter, amount from sales_full)
    pivot (sum(amount) for (year, quarter) in (
        (2023,1) q1_23, (2023,2) q2_23, (2023,3) q3_23, (2023,4) q4_23,
        (2024,1) q1_24, (2024,2) q2_24, (2024,3) q3_24, (2024,4) q4_24))
    order by category
""").toPandas()
''',
    # 11
    """
# weekday pivot with the DataFrame API, because it is shorter
from pyspark.sql import functions as F

spark.table("sales_full").groupBy("city").pivot("dow", list(range(7))).agg(F.sum("amount")).orderBy("city").show()
""",
    # 12
    '''
spark.sql("""
    create or replace temp view store_month as
    select store_id, store_name, region, sqm, year, month, sum(amount) revenue, count(distinct item_id) items
    from sales_full group by store_id, store_name, region, sqm, year, month
""")
spark.sql("select count(*) from store_month").show()
''',
    # 13
    '''
spark.sql("""
    with t as (
        select region, store_name, sum(revenue) revenue, max(sqm) sqm
        from store_month where year = 2024 group by region, store_name
    ),
    r as (
        select *, row_number() over (partition by region order by revenue desc, store_name) rn,
               round(revenue / sqm, 2) per_sqm
        from t
    )
    select * from r where rn <= 3 order by region, rn
""").show()
''',
    # 14
    '''
spark.sql("""
    select a.year, a.month, count(*) stores_up
    from store_month a join store_month b
      on a.store_id = b.store_id and a.month = b.month and a.year = b.year + 1
    where a.revenue > b.revenue
    group by a.year, a.month order by a.year, a.month
""").show()
''',
    # 15
    '''
spark.sql("""
    create or replace temp view returned as
    select f.*, r.reason, r.days_after from sales_full f join returns r on f.sale_id = r.sale_id
""")
spark.sql("select reason, count(*) n, sum(amount) amount from returned group by reason order by n desc").show()
''',
    # 16
    '''
ret = spark.sql("""
    with s as (select category, count(*) sold from sales_full group by category),
         r as (select category, count(*) returned, round(avg(days_after), 3) days from returned group by category)
    select s.category, sold, returned, round(100.0 * returned / sold, 3) pct, days
    from s left join r on s.category = r.category order by pct desc, s.category
""")
ret.show()
''',
    # 17
    '''
# members: frequency
spark.sql("""
    with m as (
        select member_id, count(*) visits, sum(amount) spent
        from sales where member_id is not null group by member_id
    ),
    b as (
        select *, case when visits < 5 then '1-4' when visits < 10 then '5-9' when visits < 20 then '10-19'
                       else '20+' end band
        from m
    )
    select band, count(*) members, sum(visits) visits, sum(spent) spent from b group by band order by members desc
""").show()
''',
    # 18
    '''
spark.sql("""
    select brand, sum(amount) revenue from sales_full
    group by brand having sum(amount) > (select sum(amount) / 100 from sales_full)
    order by revenue desc, brand limit 10
""").show()
''',
    # 19
    """
spark.sql("create database if not exists mart")
spark.table("store_month").write.mode("overwrite").format("parquet").saveAsTable("mart.store_month")
spark.sql("show tables in mart").show()
""",
    # 20
    """
sm = spark.table("mart.store_month")
print(sm.count())
sm.groupBy("year").agg(F.sum("revenue")).orderBy("year").show()
""",
    # 21
    """
spark.sql(
    "select region, year, sum(revenue) revenue from mart.store_month group by region, year order by region, year"
).toPandas().pivot(index="region", columns="year", values="revenue")
""",
    # 22
    """
spark.sql("drop table mart.store_month")
spark.sql("drop database mart")
spark.catalog.dropTempView("returned")
""",
]

# 4: limit with no order
UNORDERED = {4}

# No EXPERT: to cache `monthly` and `store_month` takes longer than to compute them again (40.3 s instead of 31.4).
